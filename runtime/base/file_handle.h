// A file descriptor that closes itself, whole writes to it, and locks between processes.
#pragma once

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
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

// All bytes, whatever a signal or the system cuts short. False: errno says why.
inline bool write_all(const FileHandle& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// True where there is nothing to wait for as well: pipes and the like.
inline bool sync_file(const FileHandle& file) { return ::fsync(file.get()) == 0 || errno == EINVAL || errno == EROFS; }

}  // namespace tandem
