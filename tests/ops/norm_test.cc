// BatchNormalization InstanceNormalization GroupNormalization LayerNormalization RMSNormalization MeanVarianceNormalization LRN
// LpNormalization
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "tests/support/graph_builder.h"
#include "tests/support/node_test.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

std::vector<Tensor> batch_norm(const Tensor& x, std::vector<Tensor> parameters, float epsilon, float momentum, std::int64_t training,
                               const EvaluateOptions& options = {}) {
  parameters.insert(parameters.begin(), x);
  return run_node({.op = "BatchNormalization",
                   .attributes = attributes({{"epsilon", epsilon}, {"momentum", momentum}, {"training_mode", training}}),
                   .operands = std::move(parameters),
                   .outputs = training ? std::size_t{3} : std::size_t{1},
                   .constant = {1, 2, 3, 4}},
                  options);
}
Tensor one(float v) { return f32({1}, {v}); }

TEST(BatchNormalization, SmallVariancesAndEpsilons) {
  expect_close(batch_norm(f32({1, 1, 1, 1}, {1}), {one(1), one(0), one(0), one(0)}, 1e-5f, 0.9f, 0)[0], f32({1, 1, 1, 1}, {316.2278f}), 1e-5);
  expect_close(batch_norm(f32({1, 1, 1, 1}, {1}), {one(1), one(0), one(0), one(0)}, 1e-3f, 0.9f, 0)[0], f32({1, 1, 1, 1}, {31.62278f}), 1e-5);
}

// The output does not depend on the momentum; running variance is the population's: x = 1, 5 gives 4, so 0.9 * 1 + 0.1 * 4.
TEST(BatchNormalization, TrainingModeUsesTheBatch) {
  for (const float momentum : {0.0f, 0.5f, 0.9f, 1.0f}) {
    const auto y = batch_norm(f32({2, 1}, {1, 3}), {one(1), one(0), one(0), one(1)}, 0, momentum, 1);
    expect_close(y[0], f32({2, 1}, {-1, 1}));
    expect_close(y[1], one(2 * (1 - momentum)));
  }
  expect_close(batch_norm(f32({2, 1}, {1, 5}), {one(1), one(0), one(0), one(1)}, 0, 0.9f, 1)[2], one(1.3f));
}

TEST(BatchNormalization, ChannelsLastIsPlainToTheBit) {
  const Tensor x = random_f32({2, 5, 3, 4}, 3);
  Tensor variance = random_f32({5}, 4);
  for (float& v : variance.as_mutable<float>()) v = v * v + 0.1f;
  const std::vector<Tensor> p = {random_f32({5}, 5), random_f32({5}, 6), random_f32({5}, 7), variance};
  EvaluateOptions last;
  last.layout = Layout::kChannelsLast;
  last.extra_pitch = 3;
  for (const std::int64_t training : {0, 1}) {
    const auto plain = batch_norm(x, p, 1e-3f, 0.9f, training), channels = batch_norm(x, p, 1e-3f, 0.9f, training, last);
    for (std::size_t i = 0; i < plain.size(); ++i) expect_close(channels[i], plain[i], 0, 0);
  }
}

TEST(BatchNormalization, RefusesParametersThatDoNotFit) {
  EXPECT_THROW(batch_norm(f32({1, 2}, {1, 2}), {one(1), one(0), one(0), one(1)}, 0, 0.9f, 0), InvalidModel);
}

TEST(InstanceNormalization, EachChannelOfEachImage) {
  const Tensor x = f32({1, 2, 2}, {1, 3, 10, 30});
  expect_close(
      run_node(
          {.op = "InstanceNormalization", .attributes = attributes({{"epsilon", 0.0f}}), .operands = {x, f32({2}, {1, 2}), f32({2}, {0, 5})}})[0],
      f32({1, 2, 2}, {-1, 1, 3, 7}));
}

TEST(GroupNormalization, ScaleAndBiasPerChannel) {
  const Tensor x = f32({1, 2, 1, 1}, {1, 3});
  const auto group = [&](std::int64_t groups) {
    return run_node({.op = "GroupNormalization",
                     .attributes = attributes({{"epsilon", 0.0f}, {"num_groups", groups}}),
                     .operands = {x, f32({2}, {1, 2}), f32({2}, {0, 5})}})[0];
  };
  expect_close(group(1), f32({1, 2, 1, 1}, {-1, 7}));
  EXPECT_THROW(group(3), InvalidModel);
}

TEST(LayerNormalization, OverTheLastAxesWithItsStatistics) {
  const auto y = run_node({.op = "LayerNormalization",
                           .attributes = attributes({{"epsilon", 0.0f}}),
                           .operands = {f32({2, 2}, {1, 3, 2, 6}), f32({2}, {1, 2}), f32({2}, {0, 1})},
                           .outputs = 3});
  expect_close(y[0], f32({2, 2}, {-1, 3, -1, 3}));
  expect_close(y[1], f32({2, 1}, {2, 4}));
  expect_close(y[2], f32({2, 1}, {1, 0.5f}));
}

TEST(LayerNormalization, NothingAndManyVectors) {
  expect_close(
      run_node({.op = "LayerNormalization", .attributes = {}, .operands = {Tensor(DType::kF32, {2, 0}), Tensor(DType::kF32, {0})}, .outputs = 1})[0],
      Tensor(DType::kF32, {2, 0}));
  std::vector<float> x(2 * 20001), want(x.size());  // more than a task's; the ends of the vectors lie at their mean plus and minus i
  for (std::size_t i = 0; i < x.size() / 2; ++i) {
    const auto spread = static_cast<float>(i % 100 + 1);
    x[2 * i] = static_cast<float>(i % 7) - spread;
    x[2 * i + 1] = static_cast<float>(i % 7) + spread;
    want[2 * i] = -1;
    want[2 * i + 1] = 3;
  }
  expect_close(run_node({.op = "LayerNormalization",
                         .attributes = attributes({{"epsilon", 0.0f}}),
                         .operands = {f32({20001, 2}, std::move(x)), f32({2}, {1, 3}), f32({2}, {0, 0})}})[0],
               f32({20001, 2}, std::move(want)));
}

TEST(Normalisations, ChannelsLastIsPlainAndNanStaysInItsVector) {
  const Tensor x = random_f32({2, 6, 3, 4}, 5);
  expect_layouts_agree({.op = "MeanVarianceNormalization", .attributes = {}, .operands = {x}});
  expect_layouts_agree({.op = "LRN", .attributes = attributes({{"size", std::int64_t{4}}}), .operands = {x}});
  expect_layouts_agree({.op = "LpNormalization", .attributes = attributes({{"axis", std::int64_t{1}}}), .operands = {x}});
  expect_close(run_node({.op = "LpNormalization", .attributes = {}, .operands = {f32({2, 2}, {NAN, 1, 3, 4})}})[0],
               f32({2, 2}, {NAN, NAN, 0.6f, 0.8f}));
  expect_close(run_node({.op = "LayerNormalization",
                         .attributes = attributes({{"epsilon", 0.0f}}),
                         .operands = {f32({2, 2}, {NAN, 1, 2, 6}), f32({2}, {1, 1})}})[0],
               f32({2, 2}, {NAN, NAN, -1, 1}));
}

TEST(RMSNormalization, KeepsTheMean) {
  const float rms = std::sqrt((9.0f + 16.0f) / 2);
  expect_close(
      run_node({.op = "RMSNormalization", .attributes = attributes({{"epsilon", 0.0f}}), .operands = {f32({1, 2}, {3, 4}), f32({2}, {1, 2})}})[0],
      f32({1, 2}, {3 / rms, 8 / rms}));
}

TEST(MeanVarianceNormalization, OverTheAxesGiven) {
  expect_close(run_node({.op = "MeanVarianceNormalization",
                         .attributes = attributes({{"axes", std::vector<std::int64_t>{0}}}),
                         .operands = {f32({2, 2}, {1, 10, 3, 30})}})[0],
               f32({2, 2}, {-1, -1, 1, 1}));
}

// Sizes 3 and 2 around each channel; an even window has its longer side behind.
TEST(LRN, OddAndEvenSizes) {
  const auto lrn = [](std::int64_t size, float alpha) {
    return run_node({.op = "LRN",
                     .attributes = attributes({{"size", size}, {"alpha", alpha}, {"beta", 1.0f}, {"bias", 0.0f}}),
                     .operands = {f32({1, 3, 1, 1}, {1, 2, 3})}})[0];
  };
  expect_close(lrn(3, 3), f32({1, 3, 1, 1}, {1.0f / 5, 2.0f / 14, 3.0f / 13}));
  expect_close(lrn(2, 2), f32({1, 3, 1, 1}, {1.0f / 5, 2.0f / 13, 3.0f / 9}));
}

TEST(LpNormalization, OneAndTwoAndZeroVectors) {
  const auto lp = [](std::int64_t p) {
    return run_node(
        {.op = "LpNormalization", .attributes = attributes({{"p", p}, {"axis", std::int64_t{1}}}), .operands = {f32({2, 2}, {3, 4, 0, 0})}})[0];
  };
  expect_close(lp(1), f32({2, 2}, {3.0f / 7, 4.0f / 7, 0, 0}));
  expect_close(lp(2), f32({2, 2}, {0.6f, 0.8f, 0, 0}));
}

}  // namespace
}  // namespace tandem::test
