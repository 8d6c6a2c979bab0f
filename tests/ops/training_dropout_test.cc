// "TrainingDropout"
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/base/philox.h"
#include "tests/support/gradient_check.h"
#include "tests/support/graph_builder.h"
#include "tests/support/node_test.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

NodeCase dropout(Tensor x, std::vector<std::int64_t> random, float rate, std::int64_t ordinal = 0) {
  return {.op = "TrainingDropout",
          .attributes = attributes({{"rate", rate}, {"ordinal", ordinal}}),
          .operands = {std::move(x), i64({3}, std::move(random))}};
}
Tensor ones(Shape shape) {
  Tensor t(DType::kF32, std::move(shape));
  std::ranges::fill(t.as_mutable<float>(), 1.0f);
  return t;
}

// Each element is decided by the word that its place names.
TEST(TrainingDropout, DecidesByPhiloxWord) {
  const Tensor y = run_node(dropout(ones({2, 3, 5}), {77, 12, 40}, 0.4f, 9))[0];
  const auto got = y.as<float>();
  for (std::uint32_t sample = 0; sample < 2; ++sample) {
    for (std::uint32_t e = 0; e < 15; ++e) {
      const float u = unit_float(philox(77, {9, 12, 40 + sample, e / 4})[e % 4]);
      EXPECT_FLOAT_EQ(got[sample * 15 + e], u < 0.4f ? 0.0f : 1 / 0.6f) << sample << ' ' << e;
    }
  }
}

TEST(TrainingDropout, KeepsTheRateAndTheMean) {
  for (const float rate : {0.0f, 0.2f, 0.5f, 0.9f}) {
    const Tensor y = run_node(dropout(ones({4, 50, 200}), {1, 2, 3}, rate))[0];
    const auto values = y.as<float>();
    const auto dropped = static_cast<double>(std::ranges::count(values, 0.0f));
    EXPECT_NEAR(dropped / 40000, rate, 0.01);
    EXPECT_TRUE(std::ranges::all_of(values, [&](float v) { return v == 0 || v == 1 / (1 - rate); }));
  }
}

// A shard draws what the whole batch draws for its samples; steps, ordinals and seeds draw differently.
TEST(TrainingDropout, DependsOnThePlaceAlone) {
  const Tensor x = random_f32({5, 3, 7}, 1);
  const auto whole = run_node(dropout(x, {1, 2, 10}, 0.5f, 4))[0];
  const Tensor part = Tensor::of<float>({2, 3, 7}, x.as<float>().subspan(63));
  expect_close(run_node(dropout(part, {1, 2, 13}, 0.5f, 4))[0], Tensor::of<float>({2, 3, 7}, whole.as<float>().subspan(63)), 0, 0);
  const auto differs = [&](const Tensor& other) { return !std::ranges::equal(whole.as<float>(), other.as<float>()); };
  EXPECT_TRUE(differs(run_node(dropout(x, {2, 2, 10}, 0.5f, 4))[0]));
  EXPECT_TRUE(differs(run_node(dropout(x, {1, 3, 10}, 0.5f, 4))[0]));
  EXPECT_TRUE(differs(run_node(dropout(x, {1, 2, 11}, 0.5f, 4))[0]));
  EXPECT_TRUE(differs(run_node(dropout(x, {1, 2, 10}, 0.5f, 5))[0]));
}

TEST(TrainingDropout, LayoutAndStorageChangeNothing) {
  expect_layouts_agree(dropout(random_f32({3, 5, 3, 7}, 2), {1, 2, 3}, 0.3f));
  expect_bf16_storage_rounds_once(dropout(random_f32({3, 5, 3, 7}, 2), {1, 2, 3}, 0.3f));
  expect_layouts_agree(dropout(random_f32({2, 70, 13, 13}, 2), {1, 2, 3}, 0.3f));  // several tasks a sample
}

TEST(TrainingDropout, GradientHasTheSameMask) {
  for (const Shape& shape : {Shape{5}, Shape{3, 7}, Shape{2, 3, 4, 5}}) {
    NodeCase c = dropout(random_f32(shape, 1), {5, 6, 7}, 0.4f, 3);
    c.constant = {1};
    check_node_gradients(c);
  }
}

TEST(TrainingDropout, RefusesRatesAndOrdinalsOutOfRange) {
  for (const float rate : {-0.1f, 1.0f, NAN}) EXPECT_THROW(run_node(dropout(ones({2}), {0, 0, 0}, rate)), InvalidModel);
  EXPECT_THROW(run_node(dropout(ones({2}), {0, 0, 0}, 0.5f, -1)), InvalidModel);
  NodeCase two = dropout(ones({2}), {0, 0, 0}, 0.5f);
  two.operands[1] = i64({2}, {0, 0});
  EXPECT_THROW(run_node(two), InvalidModel);
}

// Of inference: nothing is dropped.
TEST(Dropout, GradientOfInferenceIsDy) { check_node_gradients({.op = "Dropout", .attributes = {}, .operands = {random_f32({2, 3}, 1)}}); }

}  // namespace
}  // namespace tandem::test
