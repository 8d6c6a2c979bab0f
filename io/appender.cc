#include "io/appender.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/read_file.h"
#include "runtime/base/error.h"

namespace tandem::io {
namespace {

constexpr std::size_t kBuffer = 64 << 10;

}  // namespace

Appender::Appender(std::string path, std::string_view kept)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)), bytes_(kept.size()) {
  if (file_ < 0) fail();
  const bool taken = ::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;  // not every file system has locks
  sha_.update(kept);
  if (!taken && ::ftruncate(file_, static_cast<off_t>(kept.size())) == 0) return;
  const int error = errno;
  ::close(file_);
  errno = error;
  if (taken) throw InvalidData(fmt::format("another run is writing {}", quoted(path_)));
  fail();
}

Appender::~Appender() { ::close(file_); }

void Appender::add(std::string_view text) {
  buffer_ += text;
  bytes_ += text.size();
  sha_.update(text);
  if (buffer_.size() >= kBuffer) flush();
}

void Appender::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t n = ::write(file_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail();
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  buffer_.clear();
}

void Appender::sync() {
  flush();
  if (::fsync(file_) != 0 && errno != EINVAL && errno != EROFS) fail();  // pipes and the like cannot
}

void Appender::fail() const { throw InvalidData(fmt::format("cannot write {}: {}", quoted(path_), std::strerror(errno))); }

}  // namespace tandem::io
