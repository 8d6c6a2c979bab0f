#include "io/save_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

#include "io/read_file.h"
#include "runtime/base/error.h"
#include "runtime/base/special_file.h"

namespace tandem::io {
namespace {

constexpr std::size_t kLongestName = 200;  // of the target in a temporary name, so that it stays a valid file name

struct Place {
  std::string folder, name;
  explicit Place(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
    name = slash == std::string::npos ? path : path.substr(slash + 1);
  }
  // ".NAME.tandem-PID-N"
  std::string prefix() const { return "." + name.substr(0, kLongestName) + ".tandem-"; }
};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw InvalidData(fmt::format("cannot save {}: {}: {}", quoted(path), what, std::strerror(errno)));
}

void remove_stale(int folder, const std::string& prefix) {
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* list = copy < 0 ? nullptr : ::fdopendir(copy);
  if (!list) {
    if (copy >= 0) ::close(copy);
    return;
  }
  std::vector<std::string> stale;
  while (const dirent* entry = ::readdir(list)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(prefix)) continue;
    int pid = 0;
    const char* begin = name.data() + prefix.size();
    const auto end = std::from_chars(begin, name.data() + name.size(), pid);
    if (end.ec == std::errc() && pid > 0 && pid != ::getpid() && ::kill(pid, 0) != 0 && errno == ESRCH) stale.emplace_back(name);
  }
  ::closedir(list);
  for (const std::string& name : stale) ::unlinkat(folder, name.c_str(), 0);
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

// No file can take its place; what was written stays written.
void write_into(const std::string& path, std::span<const std::byte> bytes) {
  const Descriptor file(open_special_file(path));
  if (file.get() < 0) fail(path, "open");
  if (!write_all(file.get(), bytes)) fail(path, "write");
}

}  // namespace

void save_file(const std::string& path, std::span<const std::byte> bytes) {
  if (is_special_file(path)) return write_into(path, bytes);
  const Place place(path);
  if (place.name.empty() || place.name == "." || place.name == "..")
    throw InvalidData(fmt::format("cannot save {}: it names a folder", quoted(path)));
  const Descriptor folder(::open(place.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) fail(path, "folder");
  struct stat info {};
  if (::fstatat(folder.get(), place.name.c_str(), &info, 0) == 0 && S_ISDIR(info.st_mode)) {
    throw InvalidData(fmt::format("cannot save {}: it is a folder", quoted(path)));
  }
  remove_stale(folder.get(), place.prefix());
  std::string temporary;
  int fd = -1;
  for (int i = 0; fd < 0 && i < 1000; ++i) {
    temporary = fmt::format("{}{}-{}", place.prefix(), ::getpid(), i);
    fd = ::openat(folder.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0 && errno != EEXIST) fail(path, "new file");
  }
  if (fd < 0) fail(path, "new file");
  {
    const Descriptor file(fd);
    if (!write_all(fd, bytes) || ::fsync(fd) != 0) {
      const int error = errno;
      ::unlinkat(folder.get(), temporary.c_str(), 0);
      errno = error;
      fail(path, "write");
    }
  }
  if (::renameat(folder.get(), temporary.c_str(), folder.get(), place.name.c_str()) != 0) {
    const int error = errno;
    ::unlinkat(folder.get(), temporary.c_str(), 0);
    errno = error;
    fail(path, "rename");
  }
  ::fsync(folder.get());  // not every file system can; the file itself is safe
}

void save_file(const std::string& path, std::string_view text) { save_file(path, std::as_bytes(std::span(text.data(), text.size()))); }

}  // namespace tandem::io
