// A regular file, mapped for reading.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "importer/wire.h"
#include "runtime/base/file_handle.h"

namespace tandem {

class MappedFile {
 public:
  // Maps the open file `handle`, which must be regular and at most `max_bytes` long (checked before mapping). `name` is for messages.
  // Throws InvalidModel otherwise. The mapping outlives the handle.
  static std::shared_ptr<const MappedFile> map(const FileHandle& handle, const std::string& name, std::uint64_t max_bytes);
  // Opens and maps a file that the user named; symlinks are followed, devices and pipes refused without waiting. Throws InvalidData when it
  // cannot be opened.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& file, std::uint64_t max_bytes);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  wire::Bytes bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  // Throws InvalidModel when the file has become shorter since it was mapped: reading what is gone would end the process (SIGBUS). Who reads large
  // parts asks just before.
  void check_size() const;
  // Takes the pages of `part` out of this process's resident memory; who reads them again gets them from the file.
  static void let_go(wire::Bytes part);

 private:
  MappedFile(FileHandle file, std::string name, const void* data, std::size_t size)
      : file_(std::move(file)), name_(std::move(name)), data_(data), size_(size) {}
  const FileHandle file_;
  const std::string name_;
  const void* data_;
  const std::size_t size_;
};

}  // namespace tandem
