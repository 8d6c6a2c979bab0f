#include "io/guarded.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <new>

#include "runtime/base/error.h"

namespace tandem::io {
namespace {

// The first byte of what the child says.
constexpr char kFine = 'F', kModel = 'M', kUnsupported = 'U', kData = 'D', kOther = 'O';

// The address sanitizer maps terabytes; a limit on them would end the child at once.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitMemory = false;
#else
constexpr bool kLimitMemory = true;
#endif

void limit_memory(std::size_t more) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  if (!kLimitMemory || pages == 0) return;
  const rlim_t bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + more;
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_AS, &limit);
}

std::string outcome(const std::function<void()>& trial) {
  try {
    trial();
    return {kFine};
  } catch (const InvalidModel& e) {
    return kModel + e.message();
  } catch (const Unsupported& e) {
    return kUnsupported + e.message();
  } catch (const InvalidData& e) {
    return kData + e.message();
  } catch (const Error& e) {
    return kOther + e.message();
  } catch (const std::exception& e) {
    return kOther + std::string(e.what());
  }
}

[[noreturn]] void be_child(int pipe, std::size_t memory_bytes, const std::function<void()>& trial) {
  limit_memory(memory_bytes);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  for (const int s : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) ::signal(s, SIG_DFL);
  const std::string text = outcome(trial);
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(pipe, text.data() + at, text.size() - at);
    if (n <= 0) break;
    at += static_cast<std::size_t>(n);
  }
  ::_exit(0);
}

// What the child wrote until it ended or the time was up.
std::string listen(int pipe, int seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::string text;
  char piece[4096];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return text;
    pollfd wait{pipe, POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return text;
    const ssize_t n = ::read(pipe, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(piece, static_cast<std::size_t>(n));
  }
}

}  // namespace

void run_guarded(const std::string& what, int seconds, std::size_t memory_bytes, const std::function<void()>& trial) {
  int ends[2];
  if (::pipe(ends) != 0) return;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    be_child(ends[1], memory_bytes, trial);
  }
  ::close(ends[1]);
  std::string text;
  if (child > 0) {
    text = listen(ends[0], seconds);
    ::kill(child, SIGKILL);  // it has ended, or its time is up
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ::close(ends[0]);
  if (child < 0) return;
  if (text.empty()) throw InvalidModel(fmt::format("{} is damaged: reading it crashes, or takes more time or memory than its size explains", what));
  const std::string message = text.substr(1);
  switch (text[0]) {
    case kFine:
      return;
    case kUnsupported:
      throw Unsupported(message);
    case kData:
      throw InvalidData(message);
    default:
      throw InvalidModel(message);
  }
}

}  // namespace tandem::io
