#include "tests/support/train_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/support/files.h"

namespace tandem::test {

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::size_t count_lines(const std::string& text) { return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')); }

int run_until(std::vector<std::string> words, const std::string& log, std::size_t steps, int signal, int delay_ms) {
  words.insert(words.begin(), TANDEM_BINARY_DIR "/bin/tandem");
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  bool sent = false;
  for (int rounds = 0; waitpid(child, &status, WNOHANG) == 0; ++rounds) {
    if (!sent && count_lines(read_text(log)) >= steps) {
      std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
      kill(child, signal);
      sent = true;
    }
    if (rounds > 120000) kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::vector<std::string> steps_of(const std::string& log) {
  std::vector<std::string> all;
  std::istringstream in(read_text(log));
  for (std::string line; std::getline(in, line);) {
    auto j = nlohmann::ordered_json::parse(line);
    j.erase("img_s");
    all.push_back(j.dump());
  }
  return all;
}

void expect_same_run(const std::string& a, const std::string& b) {
  ASSERT_FALSE(read_text(a + "/model.onnx").empty());
  for (const char* file : {"/weights.h5", "/model.onnx"}) EXPECT_TRUE(read_text(a + file) == read_text(b + file)) << b << file;
  EXPECT_EQ(read_text(a + "/summary.csv"), read_text(b + "/summary.csv")) << b;
  for (const auto& entry : std::filesystem::directory_iterator(b + "/checkpoint")) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(name == "last.h5" || name == "previous.h5") << name;
  }
}

}  // namespace tandem::test
