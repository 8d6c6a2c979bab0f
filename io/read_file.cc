#include "io/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/file_handle.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {

FileHandle::FileHandle(const std::string& path) : path_(path) {
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd_ < 0) throw InvalidData(fmt::format("cannot open {}: {}", quote_whole(path), std::strerror(errno)));
  struct stat info {};
  if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd_);
    throw InvalidData(fmt::format("{} is {}, expected a regular file", quote_whole(path), S_ISDIR(info.st_mode) ? "a folder" : "a special file"));
  }
  size_ = info.st_size;
}

FileHandle::~FileHandle() {
  if (fd_ >= 0) ::close(fd_);
}

void FileHandle::read_at(std::int64_t offset, void* out, std::size_t bytes) const {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = ::pread(fd_, to, bytes, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InvalidData(fmt::format("cannot read {}: {}", quote_whole(path_), std::strerror(errno)));
    if (got == 0) throw InvalidData(fmt::format("{} ended {} bytes early", quote_whole(path_), bytes));
    to += got;
    offset += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

std::vector<std::uint8_t> read_file(const std::string& path, std::int64_t max_bytes) {
  const FileHandle file(path);
  if (file.size() > max_bytes)
    throw InvalidData(fmt::format("{} has {} bytes, more than the limit of {}", quote_whole(path), file.size(), max_bytes));
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(file.size()));
  file.read_at(0, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace tandem::io
