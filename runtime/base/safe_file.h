// Writing a file so that a crash leaves the old or the new one, never a mix. Everything that is written whole goes through here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/file_handle.h"

namespace tandem {

// A file that appears whole or not at all: written under a temporary name in the same folder (".NAME.tandem-PID-N"), synced, renamed. The target
// itself is never opened, so a link there is replaced, not followed. A temporary file is locked while somebody writes it; those of earlier saves to
// the same path that nobody has locked any more are removed first. Devices, pipes and /dev/stdout are written into instead (special_file.h). Throws
// InvalidData naming the path; the old file is then untouched. One thread at a time.
class SafeFile {
 public:
  // Throws when the folder cannot be written to.
  explicit SafeFile(std::string target);
  ~SafeFile();  // without commit() the temporary file is removed
  SafeFile(const SafeFile&) = delete;
  SafeFile& operator=(const SafeFile&) = delete;

  void write(std::string_view bytes);
  std::uint64_t written() const { return written_; }
  // Sync, rename, sync the folder.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;
  void make_temporary();

  std::string target_, name_, temporary_;  // the last two within the folder; temporary_ is empty when there is none
  FileHandle folder_, file_;
  std::uint64_t written_ = 0;
};

// The whole of it at once.
void save_file(const std::string& path, std::span<const std::byte> bytes);
void save_file(const std::string& path, std::string_view text);

}  // namespace tandem
