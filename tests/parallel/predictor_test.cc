// The library's face, tools/tandem.h: what several threads may do at once. It stands in this folder because that runs under ThreadSanitizer.
#include "tools/tandem.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/support/files.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

bool same_bits(const Tensor& a, const Tensor& b) { return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.bytes()) == 0; }

Tensor images(std::int64_t count) { return random_f32({count, 3, 64, 64}, 7 + static_cast<std::uint64_t>(count)); }

TEST(Predictor, IsTheSameFromFileAndFromMemory) {
  const Predictor from_file(Model::from_file(trained_network()), {.threads = 1});
  std::unique_ptr<Predictor> from_memory;
  {
    std::string bytes = read_text(trained_network());
    from_memory = std::make_unique<Predictor>(Model::from_memory(std::as_bytes(std::span(bytes))), RunOptions{.threads = 2});
    std::fill(bytes.begin(), bytes.end(), '\xff');  // the model keeps what it needs
  }
  EXPECT_TRUE(same_bits(from_memory->run({images(2)})[0], from_file.run({images(2)})[0]));
}

TEST(Predictor, BytesThatAreNoModelAreRefused) {
  const std::string bytes(100, '\xff');
  EXPECT_THROW(Model::from_memory(std::as_bytes(std::span(bytes))), InvalidModel);
  EXPECT_THROW(Model::from_memory({}), InvalidModel);
  EXPECT_THROW(Model::from_file("no such file.onnx"), InvalidData);
}

// The first call of every batch size makes a plan; plans, runs and submitted tasks of all threads meet.
TEST(Predictor, ServesSeveralThreadsAtOnceFromTheFirstCallOn) {
  const Model model = Model::from_file(trained_network());
  constexpr int kSizes = 3;
  std::vector<Tensor> want;
  {
    const Predictor alone(model, {.threads = 1});
    for (int n = 1; n <= kSizes; ++n) want.push_back(alone.run({images(n)})[0]);
  }
  for (const bool copies : {false, true}) {
    const Predictor shared(model, {.devices = cpu_devices(2), .threads = 2, .weights_per_device = copies});
    std::atomic<int> wrong{0}, tasks{0};
    {
      std::vector<std::jthread> callers;
      for (int c = 0; c < 4; ++c) {
        callers.emplace_back([&, c] {
          for (int i = 0; i < 3; ++i) {
            const int n = 1 + (c + i) % kSizes;
            wrong += !same_bits(shared.run({images(n)})[0], want[static_cast<std::size_t>(n - 1)]);
            shared.submit([&] { ++tasks; });
            wrong += shared.plan({{n, 3, 64, 64}}).steps.empty();
          }
        });
      }
      // An error of one caller is its own.
      callers.emplace_back([&] { EXPECT_THROW(shared.run({random_f32({1, 3, 5, 64}, 1)}), InvalidData); });
    }
    while (tasks < 12) std::this_thread::yield();
    EXPECT_EQ(wrong.load(), 0);
  }
}

}  // namespace
}  // namespace tandem::test
