// --threads T is a cap: the program never has more than T + 1 threads (the main one waits), whatever it does and on however many devices.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "io/npy.h"
#include "tests/support/files.h"
#include "tests/support/node_test.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

struct Watched {
  int code = -1;
  int most_threads = 0;  // that the process had at a time
};

// Runs the program and counts its threads until it ends, every quarter of a millisecond.
Watched watch(std::vector<std::string> words) {
  words.insert(words.begin(), TANDEM_BINARY_DIR "/bin/tandem");
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const int nothing = open("/dev/null", O_RDWR);
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, standard);
    execv(argv[0], argv.data());
    _exit(127);
  }
  Watched watched;
  const fs::path tasks = "/proc/" + std::to_string(child) + "/task";
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    std::error_code gone;
    int threads = 0;
    for (fs::directory_iterator at(tasks, gone), end; !gone && at != end; at.increment(gone)) ++threads;
    watched.most_threads = std::max(watched.most_threads, threads);
    std::this_thread::sleep_for(std::chrono::microseconds(250));
  }
  if (WIFEXITED(status)) watched.code = WEXITSTATUS(status);
  return watched;
}

struct Setting {
  const char *threads, *devices;
  int cap;
};
constexpr bool kSanitized = std::string_view(TANDEM_SANITIZE) != "";
constexpr Setting kSettings[] = {{"1", "cpu:1", 2}, {"1", "cpu:2", 2}, {"2", "cpu:1", 3}, {"2", "cpu:2", 3}, {"3", "cpu:8", 4}};

// What the command needs, then the setting; the workers are all seen, and nothing beside them.
void expect_capped(std::vector<std::string> words) {
  for (const Setting& s : kSettings) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--threads", s.threads, "--devices", s.devices});
    const Watched watched = watch(all);
    EXPECT_EQ(watched.code, 0) << words[0];
    EXPECT_EQ(watched.most_threads, s.cap) << words[0] << " --threads " << s.threads << " --devices " << s.devices;
  }
}

TEST(Threads, PredictDecodesAndRunsWithinTheCap) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer changes the count of threads in nothing and takes a minute for each run";
  const TemporaryFolder folder;
  // JPEG, PNG, BMP, WebP and files that no decoder takes; copies, so that there are batches to decode ahead.
  for (int copy = 0; copy < 3; ++copy) {
    for (const auto& entry : fs::directory_iterator(TANDEM_SOURCE_DIR "/tests/data/images")) {
      const fs::path to = folder / ("images/" + std::to_string(copy));
      fs::create_directories(to);
      fs::copy_file(entry.path(), to / entry.path().filename());
    }
  }
  expect_capped({"predict", trained_network(), folder / "images", "--recursive", "--out", folder / "rows.csv", "--preprocess", "tf", "--batch", "16",
                 "--workers", "32"});
  expect_capped({"predict", trained_network(), folder / "images", "--recursive", "--out", folder / "rows.h5", "--preprocess", "tf", "--weights",
                 "device", "--precision", "bf16"});
}

TEST(Threads, RunStaysWithinTheCap) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer changes the count of threads in nothing and takes a minute for each run";
  const TemporaryFolder folder;
  io::write_npy(folder / "x.npy", random_f32({24, 3, 64, 64}, 1));
  expect_capped({"run", trained_network(), "--input", "input_layer=" + (folder / "x.npy"), "--output", folder / "out"});
}

TEST(Threads, BenchStaysWithinTheCap) { expect_capped({"bench", trained_network(), "--batch", "8", "--iters", "3"}); }

}  // namespace
}  // namespace tandem::test
