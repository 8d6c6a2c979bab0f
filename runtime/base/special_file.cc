#include "runtime/base/special_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

namespace tandem {

namespace {

// Where the link leads, cut after 256 bytes; empty for what is no link.
std::string link_of(const std::string& path) {
  std::array<char, 256> link{};
  const ssize_t length = ::readlink(path.c_str(), link.data(), link.size());
  return length > 0 ? std::string(link.data(), static_cast<std::size_t>(length)) : std::string();
}

}  // namespace

bool is_special_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return true;
  return link_of(path).starts_with("/proc/");
}

int open_special_file(const std::string& path) {
  constexpr std::string_view kOwn = "/proc/self/fd/";
  const std::string link = link_of(path);
  int number = -1;
  if (link.starts_with(kOwn)) std::from_chars(link.data() + kOwn.size(), link.data() + link.size(), number);
  return number >= 0 ? ::fcntl(number, F_DUPFD_CLOEXEC, 3) : ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

}  // namespace tandem
