// NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "tests/support/graph_builder.h"
#include "tests/support/node_test.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

Attributes reduction(const std::string& how) { return attributes({{"reduction", how}}); }
Attributes reduction(const std::string& how, std::int64_t ignored) { return attributes({{"reduction", how}, {"ignore_index", ignored}}); }

const char* const kNll = "NegativeLogLikelihoodLoss";
const char* const kSce = "SoftmaxCrossEntropyLoss";

TEST(NegativeLogLikelihoodLoss, EachReduction) {
  const Tensor x = f32({3, 2}, {1, 2, 3, 4, 5, 6}), t = i64({3}, {0, 1, 0}), w = f32({2}, {1, 3});
  expect_close(apply_op(kNll, {x, t}, reduction("none")), f32({3}, {-1, -4, -5}));
  expect_close(apply_op(kNll, {x, t}, reduction("sum")), f32({}, {-10}));
  expect_close(apply_op(kNll, {x, t}), f32({}, {-10.0f / 3}));
  expect_close(apply_op(kNll, {x, t, w}, reduction("none")), f32({3}, {-1, -12, -5}));
  expect_close(apply_op(kNll, {x, t, w}), f32({}, {-18.0f / 5}));
  expect_close(apply_op(kNll, {x, typed<std::int32_t>({3}, {0, 1, 0})}, reduction("sum")), f32({}, {-10}));
  expect_close(apply_op(kNll, {typed<double>({1, 2}, {0.25, 0.5}), i64({1}, {1})}), typed<double>({}, {-0.5}), 0, 0);
}

TEST(NegativeLogLikelihoodLoss, IgnoredTargetsCountNowhere) {
  const Tensor x = f32({1, 2, 3}, {1, 2, 3, 4, 5, 6}), t = i64({1, 3}, {0, 1, 1}), w = f32({2}, {2, 3});
  expect_close(apply_op(kNll, {x, t}, reduction("none", 1)), f32({1, 3}, {-1, 0, 0}));
  expect_close(apply_op(kNll, {x, t}, reduction("mean", 1)), f32({}, {-1}));
  expect_close(apply_op(kNll, {x, t, w}, reduction("mean", 0)), f32({}, {-5.5f}));
}

TEST(NegativeLogLikelihoodLoss, RefusesTargetsThatAreNoClass) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  for (const std::int64_t bad : {-1, 2}) {
    EXPECT_THROW(apply_op(kNll, {x, i64({2}, {0, bad})}), InvalidData);
    EXPECT_NO_THROW(apply_op(kNll, {x, i64({2}, {0, bad})}, reduction("mean", bad)));
  }
  EXPECT_THROW(apply_op(kNll, {x, i64({1}, {0})}), InvalidModel);
  EXPECT_THROW(apply_op(kNll, {x, i64({2}, {0, 0}), f32({1}, {1})}), InvalidModel);
  EXPECT_THROW(apply_op(kNll, {x, i64({2}, {0, 0})}, reduction("product")), InvalidModel);
}

TEST(SoftmaxCrossEntropyLoss, HandValues) {
  const float l2 = std::log(2.0f), l4 = std::log(4.0f);
  const Tensor x = f32({2, 2}, {0, 0, 0, std::log(3.0f)}), t = i64({2}, {0, 0});
  const auto both = run_node({.op = kSce, .attributes = reduction("none"), .operands = {x, t}, .outputs = 2});
  expect_close(both[0], f32({2}, {l2, l4}));
  expect_close(both[1], f32({2, 2}, {-l2, -l2, -l4, std::log(0.75f)}));
  expect_close(apply_op(kSce, {x, t}), f32({}, {(l2 + l4) / 2}));
  expect_close(apply_op(kSce, {x, i64({2}, {0, 1}), f32({2}, {1, 4})}), f32({}, {(l2 - 4 * std::log(0.75f)) / 5}));
  // The logarithms are there for ignored targets too.
  const auto ignored = run_node({.op = kSce, .attributes = reduction("sum", 0), .operands = {x, t}, .outputs = 2});
  expect_close(ignored[0], f32({}, {0}));
  expect_close(ignored[1], both[1]);
}

TEST(SoftmaxCrossEntropyLoss, LargeScoresAndNan) {
  const Tensor x = f32({3, 2}, {10000, 10001, -10000, -10001, NAN, 0}), t = i64({3}, {1, 0, 0});
  const float v = std::log1p(std::exp(-1.0f));
  expect_close(apply_op(kSce, {x, t}, reduction("none")), f32({3}, {v, v, NAN}));
}

TEST(Losses, NothingToAverageIsNoNumber) {
  expect_close(apply_op(kNll, {f32({1, 1}, {1}), i64({1}, {0})}, reduction("mean", 0)), f32({}, {NAN}));
  expect_close(apply_op(kSce, {Tensor(DType::kF32, {0, 3}), Tensor(DType::kI64, {0})}, reduction("sum")), f32({}, {0}));
}

TEST(Losses, LayoutsChangeNoBit) {
  const Tensor x = random_f32({2, 5, 70, 90}, 3), w = f32({5}, {1, 2, 3, 4, 5});
  Tensor t(DType::kI64, {2, 70, 90});
  for (std::size_t i = 0; i < 12600; ++i) t.as_mutable<std::int64_t>()[i] = static_cast<std::int64_t>(i * 7 % 5);
  for (const char* how : {"none", "sum", "mean"}) {
    expect_layouts_agree({.op = kNll, .attributes = reduction(how), .operands = {x, t, w}, .constant = {2}});
    expect_layouts_agree({.op = kSce, .attributes = reduction(how, 3), .operands = {x, t, w}, .outputs = 2, .constant = {2}});
  }
}

}  // namespace
}  // namespace tandem::test
