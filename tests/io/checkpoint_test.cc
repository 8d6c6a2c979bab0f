#include "io/checkpoint.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "tests/io/message_of.h"
#include "tests/support/files.h"
#include "tests/support/soak.h"

namespace tandem::io {
namespace {

LayerWeight weight(const std::string& name, std::vector<float> values) {
  const Tensor t = Tensor::of<float>({static_cast<std::int64_t>(values.size())}, std::span<const float>(values));
  return {name, t.dtype(), t.shape(), [t] { return t; }};
}

// Every number in it tells which one it is.
Checkpoint numbered(int n, int size = 4) {
  const std::vector<float> values(static_cast<std::size_t>(size), static_cast<float>(n));
  return {{{"conv", {weight("conv/kernel:0", values), weight("conv/bias:0", {static_cast<float>(n)})}}, {"relu", {}}},
          {weight("momentum/conv/kernel", values)},
          "{\"step\":" + std::to_string(n) + "}"};
}

// Which one of numbered() it is; -1 when its parts disagree.
int number_of(const Checkpoint& c) {
  if (c.layers.size() != 2 || c.layers[0].weights.size() != 2 || c.arrays.size() != 1 || c.arrays[0].name != "momentum/conv/kernel") return -1;
  const auto n = static_cast<int>(c.layers[0].weights[1].read().as<float>()[0]);
  for (const LayerWeight* w : {&c.layers[0].weights[0], &c.arrays[0]}) {
    const Tensor values = w->read();
    for (const float v : values.as<float>()) {
      if (v != static_cast<float>(n)) return -1;
    }
  }
  return c.state == "{\"step\":" + std::to_string(n) + "}" ? n : -1;
}

class CheckpointTest : public testing::Test {
 protected:
  void save(int n, int size = 4) { save_checkpoint(folder_ / "checkpoint", numbered(n, size), {}); }
  int load() { return number_of(load_checkpoint(folder_ / "checkpoint", note_)); }
  void damage(const std::string& name, const std::string& bytes) { folder_.write("checkpoint/" + name, bytes); }
  test::TemporaryFolder folder_;
  std::string note_;
};

TEST_F(CheckpointTest, ComesBackAndKeepsThePreviousOne) {
  EXPECT_THROW(load(), InvalidData);
  for (int n = 1; n <= 3; ++n) {
    save(n);
    EXPECT_EQ(load(), n);
    EXPECT_EQ(note_, "");
  }
  damage("last.h5", "");
  EXPECT_EQ(load(), 2);
  EXPECT_NE(note_.find("last.h5"), std::string::npos) << note_;
  damage("previous.h5", "no HDF5");
  const std::string message = test::message_of<InvalidData>([&] { load(); });
  EXPECT_NE(message.find("last.h5"), std::string::npos) << message;
  EXPECT_NE(message.find("previous.h5"), std::string::npos) << message;
}

TEST_F(CheckpointTest, ADamagedOneNeverTakesTheGoodOnesPlace) {
  save(1);
  save(2);
  damage("last.h5", "cut");
  EXPECT_EQ(load(), 1);
  save(3);
  damage("last.h5", "cut again");
  EXPECT_EQ(load(), 1);
}

TEST_F(CheckpointTest, CutAnywhereThePreviousOneIsTaken) {
  save(1);
  save(2);
  const std::string whole = test::read_text(folder_ / "checkpoint/last.h5");
  constexpr std::size_t kCuts = 24;
  for (std::size_t k = 0; k < kCuts; ++k) {
    damage("last.h5", whole.substr(0, whole.size() * k / kCuts));
    EXPECT_EQ(load(), 1) << k;
    EXPECT_NE(note_, "") << k;
  }
}

// A flipped byte may lie where nothing is stored; what is loaded is right in any case.
TEST_F(CheckpointTest, FlippedBytesAreNeverLoaded) {
  save(1);
  save(2, 2000);
  const std::string whole = test::read_text(folder_ / "checkpoint/last.h5");
  int previous = 0;
  constexpr std::size_t kFlips = 32;
  for (std::size_t k = 0; k < kFlips; ++k) {
    std::string bytes = whole;
    bytes[whole.size() * k / kFlips + k] ^= 0x10;
    damage("last.h5", bytes);
    const int n = load();
    EXPECT_TRUE(n == 1 || (n == 2 && note_.empty())) << k << ": " << n;
    previous += n == 1;
  }
  EXPECT_GT(previous, static_cast<int>(kFlips) / 2);
}

// A process saves without end and says so after each; it is killed somewhere.
TEST_F(CheckpointTest, KilledAnywhereOneIsWhole) {
  const int kills = test::soak() ? 200 : 20;
  for (int round = 0; round < kills; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int n = 1000 * round + 1;; ++n) {
        save(n, 5000);
        if (write(ends[1], &n, sizeof n) != sizeof n) _exit(1);
      }
    }
    close(ends[1]);
    int acknowledged = 0, n = 0;
    for (int k = 0; k < 1 + round % 3; ++k) {
      ASSERT_EQ(read(ends[0], &n, sizeof n), static_cast<ssize_t>(sizeof n));
      acknowledged = n;
    }
    usleep(static_cast<useconds_t>(round * 137 % 1000 * 5));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    while (read(ends[0], &n, sizeof n) == static_cast<ssize_t>(sizeof n)) acknowledged = n;
    close(ends[0]);
    const int loaded = load();
    EXPECT_TRUE(loaded == acknowledged || loaded == acknowledged + 1) << loaded << " after " << acknowledged << ": " << note_;
  }
}

}  // namespace
}  // namespace tandem::io
