#include "importer/safe_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "importer/quote.h"
#include "runtime/base/error.h"
#include "runtime/base/special_file.h"

namespace tandem {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, const char* what) {
  throw InvalidData(fmt::format("{} cannot be {}: {}", quote(file.string()), what, std::strerror(errno)));
}

}  // namespace

SafeFile::SafeFile(std::filesystem::path target) : target_(std::move(target)) {
  if (is_special_file(target_)) {
    handle_ = FileHandle(open_special_file(target_));
    if (!handle_) fail(target_, "opened");
    return;
  }
  for (int attempt = 0; !handle_ && attempt < 100; ++attempt) {
    temporary_ = target_;
    temporary_ += fmt::format(".tmp-{}-{}", ::getpid(), attempt);
    handle_ = FileHandle(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!handle_ && errno != EEXIST) break;
  }
  if (!handle_) {
    const auto failed = temporary_;
    temporary_.clear();
    fail(failed, "created");
  }
}

SafeFile::~SafeFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void SafeFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(handle_.get(), bytes.data(), std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail(temporary_.empty() ? target_ : temporary_, "written");
    written_ += static_cast<std::uint64_t>(count);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void SafeFile::commit() {
  if (temporary_.empty()) return;
  if (::fsync(handle_.get()) != 0) fail(temporary_, "synced");
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail(target_, "replaced");
  temporary_.clear();
  const auto folder = target_.has_parent_path() ? target_.parent_path() : std::filesystem::path(".");
  const FileHandle directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory) ::fsync(directory.get());
}

}  // namespace tandem
