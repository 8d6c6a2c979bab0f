#include "io/appender.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {
namespace {

constexpr std::size_t kBuffer = 64 << 10;

}  // namespace

Appender::Appender(std::string path, std::string_view kept)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)), bytes_(kept.size()) {
  if (!file_) fail();
  if (try_lock(file_) == Lock::kTaken) throw InvalidData(fmt::format("another run is writing {}", quote_whole(path_)));
  if (::ftruncate(file_.get(), static_cast<off_t>(kept.size())) != 0) fail();
  sha_.update(kept);
}

void Appender::add(std::string_view text) {
  buffer_ += text;
  bytes_ += text.size();
  sha_.update(text);
  if (buffer_.size() >= kBuffer) flush();
}

void Appender::flush() {
  if (!write_all(file_, buffer_)) fail();
  buffer_.clear();
}

void Appender::sync() {
  flush();
  if (!sync_file(file_)) fail();
}

void Appender::fail() const { throw InvalidData(fmt::format("cannot write {}: {}", quote_whole(path_), std::strerror(errno))); }

}  // namespace tandem::io
