// A file descriptor that closes itself, and locks between processes.
#pragma once

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace tandem {

class FileHandle {
 public:
  explicit FileHandle(int descriptor = -1) : descriptor_(descriptor) {}
  ~FileHandle() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FileHandle(FileHandle&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// kFree: the file (or folder) is locked for this handle now, until it is closed or its process ends, however it ends. kTaken: another handle, of this
// process or another, has the lock. kUnknown: the file system has no locks. Never waits.
enum class Lock { kFree, kTaken, kUnknown };
inline Lock try_lock(const FileHandle& file) {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return Lock::kFree;
  return errno == EWOULDBLOCK ? Lock::kTaken : Lock::kUnknown;
}

}  // namespace tandem
