#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

// Runs Clip with the bounds computed and with the bounds constant; both must agree.
Tensor clip(Tensor x, Tensor low, Tensor high) {
  NodeCase c{.op = "Clip", .attributes = {}, .operands = {std::move(x), std::move(low), std::move(high)}};
  const Tensor computed = run_node(c)[0];
  for (const std::size_t i : {1u, 2u}) {
    if (c.operands[i]) c.constant.push_back(i);
  }
  expect_close(run_node(c)[0], computed, 0, 0);
  return computed;
}

TEST(Threshold, ClipWithOneBothAndNoBounds) {
  const Tensor x = f32({2}, {-3, 9});
  expect_close(clip(x, {}, f32({}, {6})), f32({2}, {-3, 6}));
  expect_close(clip(x, f32({}, {0}), {}), f32({2}, {0, 9}));
  expect_close(clip(x, f32({}, {0}), f32({}, {6})), f32({2}, {0, 6}));
  expect_close(clip(x, {}, {}), x);
  expect_close(apply_op("Clip", {x}), x);
  expect_close(clip(x, f32({1}, {0}), {}), f32({2}, {0, 9}));  // one element is as good as a scalar
}

TEST(Threshold, ClipWithCrossedBoundsAndNan) {
  expect_close(clip(f32({3}, {-3, 5, 9}), f32({}, {7}), f32({}, {2})), f32({3}, {2, 2, 2}));
  expect_close(clip(f32({3}, {NAN, -INFINITY, INFINITY}), f32({}, {0}), f32({}, {6})), f32({3}, {NAN, 0, 6}));
}

TEST(Threshold, ClipKeepsIntegerTypes) {
  expect_close(clip(typed<std::int8_t>({3}, {-128, 4, 100}), typed<std::int8_t>({}, {-5}), typed<std::int8_t>({}, {50})),
               typed<std::int8_t>({3}, {-5, 4, 50}));
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  expect_close(clip(i64({1}, {big}), i64({}, {0}), {}), i64({1}, {big}));
  EXPECT_THROW(apply_op("Clip", {f32({1}, {1}), i64({}, {1})}), InvalidModel);
  EXPECT_THROW(apply_op("Clip", {f32({1}, {1}), f32({2}, {1, 2})}), InvalidModel);
}

TEST(Threshold, PReluBroadcastsTheSlopeOneWay) {
  expect_close(apply_op("PRelu", {f32({1, 2, 2}, {-1, 2, -3, 4}), f32({2, 1}, {0.5f, 2})}), f32({1, 2, 2}, {-0.5f, 2, -6, 4}));
  expect_close(apply_op("PRelu", {f32({2}, {-1, NAN}), f32({}, {0.25f})}), f32({2}, {-0.25f, NAN}));
  expect_close(apply_op("PRelu", {i64({2}, {-3, 3}), i64({1}, {2})}), i64({2}, {-6, 3}));
  EXPECT_THROW(apply_op("PRelu", {f32({2}, {1, 2}), f32({3, 2}, {1, 1, 1, 1, 1, 1})}), InvalidModel);
}

TEST(Threshold, ThresholdedReluAndShrink) {
  Attributes a;
  a.set("alpha", 2.0f);
  expect_close(apply_op("ThresholdedRelu", {f32({4}, {-1.5f, 1, 1.25f, NAN})}), f32({4}, {0, 0, 1.25f, NAN}));
  expect_close(apply_op("ThresholdedRelu", {f32({4}, {-1.5f, 0, 2, 2.2f})}, a), f32({4}, {0, 0, 0, 2.2f}));
  Attributes hard, soft;
  hard.set("lambd", 1.5f);
  soft.set("lambd", 1.5f);
  soft.set("bias", 1.5f);
  expect_close(apply_op("Shrink", {f32({5}, {-2, -1, 0, 1, 2})}, hard), f32({5}, {-2, 0, 0, 0, 2}));
  expect_close(apply_op("Shrink", {f32({5}, {-2, -1, 0, 1, 2})}, soft), f32({5}, {-0.5f, 0, 0, 0, 0.5f}));
  expect_close(apply_op("Shrink", {i64({3}, {-4, 1, 4})}, soft), i64({3}, {-2, 0, 2}));
  EXPECT_THROW(apply_op("ThresholdedRelu", {i64({1}, {1})}), InvalidModel);
}

TEST(Threshold, LayoutsAndStorageChangeNothing) {
  const Tensor x = random_f32({2, 5, 4, 3}, 1), slope = random_f32({5, 1, 1}, 2);
  for (const NodeCase& c :
       {NodeCase{.op = "PRelu", .attributes = {}, .operands = {x, slope}},
        NodeCase{.op = "Clip", .attributes = {}, .operands = {x, f32({}, {-0.5f}), f32({}, {0.25f})}},
        NodeCase{.op = "Shrink", .attributes = {}, .operands = {x}}, NodeCase{.op = "ThresholdedRelu", .attributes = {}, .operands = {x}}}) {
    expect_layouts_agree(c);
    expect_bf16_storage_rounds_once(c);
  }
}

}  // namespace
}  // namespace tandem::test
