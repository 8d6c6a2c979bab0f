// An open regular file, read by offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tandem::io {

// Opens for reading without ever blocking; only regular files (InvalidData otherwise, naming path and reason). read_at is safe from
// several threads at once.
class FileHandle {
 public:
  explicit FileHandle(const std::string& path);
  ~FileHandle();
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }  // bytes, when it was opened
  // Exactly `bytes` bytes from `offset`; InvalidData when the file is shorter or cannot be read.
  void read_at(std::int64_t offset, void* out, std::size_t bytes) const;

 private:
  std::string path_;
  int fd_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace tandem::io
