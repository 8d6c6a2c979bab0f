#include "tests/support/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace tandem::test {
namespace {

struct Pipe {
  std::array<int, 2> ends{};
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error(std::strerror(errno));
  }
};

[[noreturn]] void become(const std::vector<std::string>& argv, const Launch& launch, int out, int err) {
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  for (const auto& [name, value] : launch.environment) setenv(name.c_str(), value.c_str(), 1);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execv(words[0], words.data());
  _exit(127);
}

// Reads both pipes until both are closed or the time is over; false: over.
bool collect(int out, int err, Finished& finished, int timeout_seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_seconds);
  std::array<pollfd, 2> pipes = {{{out, POLLIN, 0}, {err, POLLIN, 0}}};
  std::array<std::string*, 2> texts = {&finished.out, &finished.err};
  while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0 || poll(pipes.data(), pipes.size(), static_cast<int>(left)) == 0) return false;
    for (std::size_t i = 0; i < pipes.size(); ++i) {
      if (pipes[i].fd < 0 || pipes[i].revents == 0) continue;
      std::array<char, 65536> buffer;
      const ssize_t n = read(pipes[i].fd, buffer.data(), buffer.size());
      if (n > 0) {
        texts[i]->append(buffer.data(), static_cast<std::size_t>(n));
      } else if (n == 0 || errno != EINTR) {
        pipes[i].fd = -1;  // poll() skips it
      }
    }
  }
  return true;
}

}  // namespace

Finished run_program(const std::vector<std::string>& argv, const Launch& launch) {
  if (access(argv.at(0).c_str(), X_OK) != 0) throw std::runtime_error("cannot run " + argv[0]);
  Pipe out, err;
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error(std::strerror(errno));
  if (child == 0) become(argv, launch, out.ends[1], err.ends[1]);
  close(out.ends[1]);
  close(err.ends[1]);
  Finished finished;
  finished.timed_out = !collect(out.ends[0], err.ends[0], finished, launch.timeout_seconds);
  if (finished.timed_out) kill(child, SIGKILL);
  close(out.ends[0]);
  close(err.ends[0]);
  int status = 0;
  rusage used{};
  wait4(child, &status, 0, &used);
  finished.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  finished.peak_kilobytes = used.ru_maxrss;
  if (WIFEXITED(status)) finished.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) finished.signal = WTERMSIG(status);
  return finished;
}

Finished run_tandem(std::vector<std::string> arguments, const Launch& launch) {
  arguments.insert(arguments.begin(), TANDEM_BINARY_DIR "/bin/tandem");
  return run_program(arguments, launch);
}

}  // namespace tandem::test
