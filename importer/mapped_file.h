// A regular file, mapped for reading.
#pragma once

#include <filesystem>
#include <memory>

#include "importer/wire.h"

namespace tandem {

// A file descriptor that closes itself.
class FileHandle {
 public:
  explicit FileHandle(int descriptor = -1) : descriptor_(descriptor) {}
  ~FileHandle();
  FileHandle(FileHandle&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  FileHandle& operator=(FileHandle&& other) noexcept;
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

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
  // Takes the pages of `part` out of this process's resident memory; who reads them again gets them from the file.
  static void let_go(wire::Bytes part);

 private:
  MappedFile(const void* data, std::size_t size) : data_(data), size_(size) {}
  const void* data_;
  std::size_t size_;
};

}  // namespace tandem
