// A loss or a gradient that is no finite number is found before the update: nothing is changed by such a batch.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "parallel/trainer.h"
#include "tests/support/graph_builder.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

// y = x * w, one weight, start 2; mse. One sample (x, target): loss (2 x - target)^2, gradient 2 x (2 x - target).
struct Line {
  Line(const OptimizerOptions& optimizer, int accumulate, double l2 = 0) {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::kF32, {-1, 1});
    const ValueId w = b.constant("line/kernel", Tensor::of<float>({1, 1}, std::vector<float>{2}));
    b.output(b.node("y", "Gemm", {x, w}));
    TrainerOptions options;
    options.training.trained = {w};
    options.training.loss = "mse";
    options.parameters = {{.name = "line/kernel", .shape = {1, 1}, .l2 = l2}};
    options.optimizer = optimizer;
    options.accumulate = accumulate;
    trainer = std::make_unique<Trainer>(std::make_shared<const Graph>(b.graph), options, pool, cpu);
  }
  StepReport step(float x, float target, float rate) {
    const auto one = [](float v, const Shape& shape) { return Tensor::of<float>(shape, std::vector<float>{v}); };
    return trainer->step({.inputs = {one(x, {1, 1})}, .target = one(target, {1, 1}), .weight = one(1, {1})}, rate);
  }
  float weight() const { return trainer->group().weights().data(0)[0]; }

  TaskPool pool{2};
  const CpuInfo cpu = CpuInfo::detect();
  std::unique_ptr<Trainer> trainer;
};

void expect_same_state(const Trainer::State& a, const Trainer::State& b) {
  EXPECT_EQ(a.iteration, b.iteration);
  EXPECT_EQ(a.accumulated, b.accumulated);
  for (const auto& [left, right] : {std::pair(&a.weights, &b.weights), std::pair(&a.slots, &b.slots)}) {
    ASSERT_EQ(left->size(), right->size());
    for (std::size_t i = 0; i < left->size(); ++i)
      EXPECT_EQ(0, std::memcmp((*left)[i].values.data(), (*right)[i].values.data(), (*left)[i].values.bytes())) << (*left)[i].name;
  }
}

// x = 1e25: the loss is 4e50 in double, the gradient 4e50 beyond float32.
TEST(NotFinite, AGradientLeavesWeightsSlotsAverageAndCounterAsTheyAre) {
  for (const char* name : {"sgd", "momentum", "nesterov", "rmsprop", "adam", "adamw", "adagrad"}) {
    for (const int accumulate : {1, 3}) {
      OptimizerOptions optimizer = default_optimizer(name, OptimizerConvention::kKeras);
      optimizer.ema = 0.9;
      if (accumulate == 1) optimizer.global_clip_norm = 1;
      Line line(optimizer, accumulate), plain(optimizer, accumulate);
      for (Line* l : {&line, &plain}) {
        for (const float x : {1.0f, 0.5f}) l->step(x, 3, 0.1f);
      }
      const Trainer::State before = line.trainer->state();
      const StepReport bad = line.step(1e25f, 0, 0.1f);
      EXPECT_TRUE(std::isfinite(bad.loss)) << name;
      EXPECT_FALSE(std::isfinite(bad.gradient_norm)) << name;
      EXPECT_FALSE(bad.updated);
      expect_same_state(before, line.trainer->state());
      // On it goes as if that batch had not been.
      for (Line* l : {&line, &plain}) l->step(2, 1, 0.1f);
      expect_same_state(plain.trainer->state(), line.trainer->state());
    }
  }
}

TEST(NotFinite, ASumOfFiniteGradientsThatOverflowsIsDropped) {
  Line line(default_optimizer("sgd", OptimizerConvention::kKeras), 2);
  const float x = 8e18f;  // gradient 4 x^2 = 2.56e38, twice that is beyond float32
  EXPECT_TRUE(line.step(x, 0, 0.1f).is_finite());
  const StepReport second = line.step(x, 0, 0.1f);
  EXPECT_FALSE(second.is_finite());
  EXPECT_FALSE(second.updated);
  EXPECT_EQ(line.weight(), 2.0f);
  EXPECT_EQ(line.trainer->iteration(), 0);
  EXPECT_EQ(line.trainer->accumulated(), 0);
  // Gradients 2 x (2 x - t) = 4 and 12, mean 8.
  line.step(1, 0, 0.125f);
  EXPECT_TRUE(line.step(1, -4, 0.125f).updated);
  EXPECT_EQ(line.weight(), 1.0f);
}

// The penalty of the weights as they are: 0.5 * 2^2, and after the step 2 - 0.25 * (4 + 2) = 0.5.
TEST(Penalty, IsThatOfTheWeightsNow) {
  OptimizerOptions optimizer = default_optimizer("sgd", OptimizerConvention::kTorch);
  optimizer.ema = 0.5;  // from the start: (2 + 0.5) / 2
  Line line(optimizer, 1, 0.5);
  EXPECT_EQ(line.trainer->penalty(), 2.0);
  const StepReport report = line.step(1, 0, 0.25f);
  EXPECT_EQ(report.penalty, 2.0);
  EXPECT_EQ(report.loss, 6.0);
  EXPECT_EQ(line.weight(), 0.5f);
  EXPECT_EQ(line.trainer->penalty(), 0.125);
  EXPECT_EQ(line.trainer->penalty(true), 0.5 * 1.25 * 1.25);
}

}  // namespace
}  // namespace tandem::test
