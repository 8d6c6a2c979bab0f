#include "runtime/base/safe_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/quote.h"
#include "runtime/base/special_file.h"

namespace tandem {
namespace {

constexpr std::size_t kLongestName = 200;  // of the target in a temporary name, so that it stays a valid file name

std::string temporary_prefix(const std::string& name) { return "." + name.substr(0, kLongestName) + ".tandem-"; }

// The process in a temporary name "PREFIXPID-N"; 0 for other names.
pid_t writer_of(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return 0;
  const char* const end = name.data() + name.size();
  pid_t pid = 0;
  unsigned number = 0;
  const auto first = std::from_chars(name.data() + prefix.size(), end, pid);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return 0;
  const auto second = std::from_chars(first.ptr + 1, end, number);
  return second.ec == std::errc() && second.ptr == end && pid > 0 ? pid : 0;
}

// Whether nobody writes this temporary file any more. The handle keeps the lock, so that nobody begins to.
bool is_left_over(const FileHandle& file, pid_t writer) {
  if (!file) return false;
  const Lock lock = try_lock(file);
  if (lock != Lock::kUnknown) return lock == Lock::kFree;
  return writer != ::getpid() && ::kill(writer, 0) != 0 && errno == ESRCH;
}

void remove_stale(const FileHandle& folder, const std::string& prefix) {
  const int copy = ::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* list = copy < 0 ? nullptr : ::fdopendir(copy);
  if (!list) {
    if (copy >= 0) ::close(copy);
    return;
  }
  std::vector<std::pair<std::string, pid_t>> found;
  while (const dirent* entry = ::readdir(list)) {
    if (const pid_t writer = writer_of(entry->d_name, prefix)) found.emplace_back(entry->d_name, writer);
  }
  ::closedir(list);
  for (const auto& [name, writer] : found) {
    const FileHandle file(::openat(folder.get(), name.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (is_left_over(file, writer)) ::unlinkat(folder.get(), name.c_str(), 0);
  }
}

}  // namespace

void SafeFile::fail(const char* what) const {
  throw InvalidData(fmt::format("cannot save {}: {}: {}", quote(target_, target_.size()), what, std::strerror(errno)));
}

SafeFile::SafeFile(std::string target) : target_(std::move(target)) {
  if (is_special_file(target_)) {
    file_ = FileHandle(open_special_file(target_));
    if (!file_) fail("open");
    return;
  }
  const std::size_t slash = target_.rfind('/');
  name_ = slash == std::string::npos ? target_ : target_.substr(slash + 1);
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : target_.substr(0, slash);
  const auto refuse_folder = [&] { throw InvalidData(fmt::format("cannot save {}: it is a folder", quote(target_, target_.size()))); };
  if (name_.empty() || name_ == "." || name_ == "..") refuse_folder();
  folder_ = FileHandle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_) fail("folder");
  struct stat info {};
  if (::fstatat(folder_.get(), name_.c_str(), &info, 0) == 0 && S_ISDIR(info.st_mode)) refuse_folder();
  remove_stale(folder_, temporary_prefix(name_));
  make_temporary();
}

void SafeFile::make_temporary() {
  for (int i = 0; i < 1000; ++i) {
    const std::string name = fmt::format("{}{}-{}", temporary_prefix(name_), ::getpid(), i);
    FileHandle made(::openat(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!made && errno != EEXIST) break;
    if (!made || try_lock(made) == Lock::kTaken) continue;  // somebody took the new file for a left-over one
    struct stat info {};
    if (::fstat(made.get(), &info) == 0 && info.st_nlink == 0) continue;  // and has removed it
    temporary_ = name;
    file_ = std::move(made);
    return;
  }
  fail("new file");
}

SafeFile::~SafeFile() {
  if (!temporary_.empty()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
}

void SafeFile::write(std::string_view bytes) {
  if (!write_all(file_, bytes)) fail("write");
  written_ += bytes.size();
}

void SafeFile::commit() {
  if (temporary_.empty()) return;
  if (::fsync(file_.get()) != 0) fail("write");
  if (::renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str()) != 0) fail("rename");
  temporary_.clear();
  file_ = FileHandle();    // and with it the lock, which went along to the new name
  ::fsync(folder_.get());  // not every file system can; the file itself is safe
}

void save_file(const std::string& path, std::span<const std::byte> bytes) {
  save_file(path, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void save_file(const std::string& path, std::string_view text) {
  SafeFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace tandem
