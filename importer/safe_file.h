// A file that appears whole or not at all: written under a temporary name in the same folder, synced, renamed. An existing target, link or
// hard link is replaced, never opened. Devices, pipes and /dev/stdout are written into instead (special_file.h).
#pragma once

#include <filesystem>
#include <string_view>

#include "importer/mapped_file.h"

namespace tandem {

class SafeFile {
 public:
  // Throws InvalidData when the folder cannot be written to.
  explicit SafeFile(std::filesystem::path target);
  ~SafeFile();  // without commit() the temporary file is removed
  SafeFile(const SafeFile&) = delete;
  SafeFile& operator=(const SafeFile&) = delete;

  void write(std::string_view bytes);
  std::uint64_t written() const { return written_; }
  // Sync, rename, sync the folder.
  void commit();

 private:
  std::filesystem::path target_, temporary_;
  FileHandle handle_;
  std::uint64_t written_ = 0;
};

}  // namespace tandem
