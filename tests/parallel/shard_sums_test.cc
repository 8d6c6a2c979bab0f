// What sums over shards must come to, on numbers that can be checked by hand: gradients, clipping, statistics of batch norm, parameters that the loss
// does not reach.
#include <gtest/gtest.h>

#include "parallel/trainer.h"
#include "tests/support/graph_builder.h"

namespace tandem::test {
namespace {

Tensor column(const std::vector<float>& values) {
  return Tensor::of<float>({static_cast<std::int64_t>(values.size()), 1}, std::span<const float>(values));
}

Tensor ones(std::int64_t n) {
  Tensor t(DType::kF32, {n});
  for (float& v : t.as_mutable<float>()) v = 1;
  return t;
}

// x [N, features] times w, which starts at 0.
struct Linear {
  explicit Linear(std::int64_t features) {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::kF32, {-1, features});
    w = b.constant("w", Tensor(DType::kF32, {features, 1}));
    b.output(b.node("y", "MatMul", {x, w}));
    graph = b.graph;
  }
  Trainer trainer(int shards, double clip_norm = 0, int devices = 1) const {
    TrainerOptions o;
    o.training.loss = "mse";
    o.training.trained = {w};
    o.parameters = {{.name = "w", .shape = graph.value(w).shape}};
    o.optimizer = default_optimizer("sgd", OptimizerConvention::kKeras);
    o.optimizer.clip_norm = clip_norm;
    o.shards.shards = shards;
    o.shards.devices = devices;
    return Trainer(std::make_shared<const Graph>(graph), o, pool, cpu);
  }
  Graph graph;
  ValueId w = kNoValue;
  mutable TaskPool pool{2};
  const CpuInfo cpu = CpuInfo::detect();
};

TEST(ShardSums, UnequalShardsGiveTheMeanOverTheSamples) {
  // (0 - t)^2 has the gradient -2 t: 1, 2, 3, 4, 10 in shards of 3 and 2. The mean of the shards' means would be 4.5.
  const Linear linear(1);
  Trainer trainer = linear.trainer(2);
  const StepReport report = trainer.step({.inputs = {column({1, 1, 1, 1, 1})}, .target = column({-0.5, -1, -1.5, -2, -5}), .weight = ones(5)}, 1.0f);
  EXPECT_EQ(trainer.group().gradients().data(0)[0], 20.0f);
  EXPECT_EQ(report.gradient_norm, 4.0);
  EXPECT_EQ(trainer.group().weights().data(0)[0], -4.0f);
}

TEST(ShardSums, AnyBatchOnAnyNumberOfShards) {
  const Linear linear(1);
  for (int shards = 1; shards <= 8; ++shards) {
    Trainer trainer = linear.trainer(shards);
    for (std::int64_t samples = 1; samples <= 17; ++samples) {
      std::vector<float> x(static_cast<std::size_t>(samples), 1.0f), t;
      float sum = 0;
      for (std::int64_t s = 0; s < samples; ++s) {
        t.push_back(static_cast<float>(-s * s));
        sum -= 2 * t.back();
      }
      const StepReport report = trainer.step({.inputs = {column(x)}, .target = column(t), .weight = ones(samples)}, 0.0f);
      EXPECT_EQ(trainer.group().gradients().data(0)[0], sum) << samples << " samples, " << shards << " shards";
      EXPECT_EQ(report.batch.samples, samples);
      EXPECT_EQ(report.batch.prediction.shape()[0], samples);
    }
  }
}

// Ten samples in shards of 2, 2, 1, 1, 1, 1, 1, 1, which three devices hold as 3, 3, 2; then two samples in two shards.
TEST(ShardSums, WhatADeviceDidIsCountedApart) {
  const Linear linear(1);
  Trainer trainer = linear.trainer(8, 0, 3), one = linear.trainer(8);
  const auto step = [](Trainer& t, std::int64_t n) {
    const Tensor x = column(std::vector<float>(static_cast<std::size_t>(n), 0.3f));
    t.step({.inputs = {x}, .target = x, .weight = ones(n)}, 0.1f);
  };
  const auto expect = [&](const std::vector<std::int64_t>& samples) {
    const auto& use = trainer.group().device_use();
    ASSERT_EQ(use.size(), samples.size());
    for (std::size_t d = 0; d < use.size(); ++d) {
      EXPECT_EQ(use[d].samples, samples[d]) << d;
      EXPECT_EQ(use[d].busy_seconds > 0, samples[d] > 0) << d;
      EXPECT_LT(use[d].busy_seconds, 60);
    }
  };
  expect({0, 0, 0});
  step(trainer, 10);
  expect({5, 3, 2});
  step(trainer, 2);
  expect({6, 4, 2});
  step(one, 10);
  step(one, 2);
  EXPECT_EQ(one.group().device_use().at(0).samples, 12);
  EXPECT_EQ(one.group().weights().data(0)[0], trainer.group().weights().data(0)[0]);
}

TEST(ShardSums, GradientsAreClippedBehindTheirMean) {
  const Linear linear(2);
  Trainer trainer = linear.trainer(2, 1.0);
  Tensor x(DType::kF32, {2, 2});
  const float rows[] = {3, 4, 3, 4};
  std::copy_n(rows, 4, x.as_mutable<float>().data());
  const StepReport report = trainer.step({.inputs = {x}, .target = column({-0.5, -0.5}), .weight = ones(2)}, 1.0f);
  EXPECT_EQ(report.gradient_norm, 5.0);
  EXPECT_FLOAT_EQ(trainer.group().weights().data(0)[0], -0.6f);
  EXPECT_FLOAT_EQ(trainer.group().weights().data(0)[1], -0.8f);
}

TEST(ShardSums, AParameterThatTheLossDoesNotReachStaysAsItIs) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::kF32, {-1, 1});
  const ValueId w = b.constant("w", column({0})), v = b.constant("v", column({7}));
  b.output(b.node("y", "MatMul", {x, w}));
  b.output(b.node("aside", "MatMul", {x, v}));
  TrainerOptions o;
  o.training.loss = "mse";
  o.training.trained = {v, w};
  o.parameters = {{.name = "v", .shape = {1, 1}}, {.name = "w", .shape = {1, 1}}};
  o.optimizer = default_optimizer("momentum", OptimizerConvention::kKeras);
  o.shards.shards = 2;
  TaskPool pool(2);
  const CpuInfo cpu = CpuInfo::detect();
  Trainer trainer(std::make_shared<const Graph>(b.graph), o, pool, cpu);
  for (int step = 0; step < 3; ++step) trainer.step({.inputs = {column({1, 1, 1})}, .target = column({1, 1, 1}), .weight = ones(3)}, 0.1f);
  EXPECT_EQ(trainer.group().weights().data(0)[0], 7.0f);
  EXPECT_GT(trainer.group().weights().data(1)[0], 0.0f);
}

struct Moving {
  float mean, variance;
};

// One step on two shards of two samples through a batch norm with momentum 0.9 whose mean starts at 0.
Moving moving_after(const std::vector<float>& values, float variance, BatchNormMode mode, bool unbiased, Precision precision = Precision::kF32) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::kF32, {-1, 1, 1, 1});
  const auto one = [&](const char* name, float v) { return b.constant(name, Tensor::of<float>({1}, std::span<const float>(&v, 1))); };
  const ValueId gamma = one("gamma", 1);
  const ValueId y =
      b.node("bn", "BatchNormalization", {x, gamma, one("beta", 0), one("mean", 0), one("variance", variance)}, attributes({{"momentum", 0.9f}}));
  b.output(b.node("flat", "Flatten", {y}));
  TrainerOptions o;
  o.training.loss = "mse";
  o.training.batch_norm = mode;
  o.training.trained = {gamma};
  o.training.running = {batch_norm_layers(b.graph).at(0).statistics};
  o.parameters = {{.name = "gamma", .shape = {1}}};
  o.optimizer = default_optimizer("sgd", OptimizerConvention::kKeras);
  o.shards.shards = 2;
  o.shards.plan.precision = precision;
  o.unbiased_variance = unbiased;
  TaskPool pool(2);
  const CpuInfo cpu = CpuInfo::detect();
  Trainer trainer(std::make_shared<const Graph>(b.graph), o, pool, cpu);
  const auto n = static_cast<std::int64_t>(values.size());
  trainer.step(
      {.inputs = {Tensor::of<float>({n, 1, 1, 1}, std::span<const float>(values))}, .target = Tensor(DType::kF32, {n, 1}), .weight = ones(n)}, 0.1f);
  const auto& s = trainer.group().statistics().at(0);
  return {s.mean.at(0), s.variance.at(0)};
}

TEST(ShardSums, MovingStatisticsOfTwoShards) {
  const std::vector<float> values = {1, 3, 5, 7};
  const auto expect = [](const Moving& found, float mean, float variance) {
    EXPECT_FLOAT_EQ(found.mean, mean);
    EXPECT_FLOAT_EQ(found.variance, variance);
  };
  expect(moving_after(values, 1, BatchNormMode::kSync, false), 0.4f, 0.9f + 0.1f * 5);
  expect(moving_after(values, 1, BatchNormMode::kLocal, false), 0.4f, 0.9f + 0.1f * 1);
  expect(moving_after(values, 1, BatchNormMode::kSync, true), 0.4f, 0.9f + 0.1f * 20 / 3);
  expect(moving_after(values, 1, BatchNormMode::kLocal, true), 0.4f, 0.9f + 0.1f * 2);
  // Shards of two and of one: each counts by its samples.
  expect(moving_after({1, 3, 5}, 1, BatchNormMode::kLocal, false), 0.3f, 0.9f + 0.1f * 2 / 3);
}

TEST(ShardSums, AVarianceBeyondHalfPrecisionStaysFinite) {
  const Moving found = moving_after({-272, 272, -272, 272}, 70000, BatchNormMode::kSync, false, Precision::kBF16);
  EXPECT_FLOAT_EQ(found.mean, 0.0f);
  EXPECT_FLOAT_EQ(found.variance, 0.9f * 70000 + 0.1f * 73984);
}

}  // namespace
}  // namespace tandem::test
