// Cast CastLike
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "tests/support/graph_builder.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

// ONNX's type numbers.
constexpr std::int64_t kFloat = 1, kUint8 = 2, kInt32 = 6, kString = 8, kBool = 9, kHalf = 10, kUint64 = 13, kBfloat = 16;

Tensor cast(const Tensor& x, std::int64_t to) { return run_node({.op = "Cast", .attributes = attributes({{"to", to}}), .operands = {x}})[0]; }

TEST(Cast, FloatsAreCutTowardsZero) {
  const std::int32_t want[] = {1, -1, 0, 100};
  expect_close(cast(f32({4}, {1.9f, -1.9f, 0.5f, 100}), kInt32), Tensor::of<std::int32_t>({4}, want));
  const std::uint8_t bytes[] = {255, 0};
  expect_close(cast(f32({2}, {255.7f, 0}), kUint8), Tensor::of<std::uint8_t>({2}, bytes));
}

TEST(Cast, AnythingButZeroIsTrue) {
  const bool want[] = {false, true, true};
  expect_close(cast(f32({3}, {0, 0.25f, NAN}), kBool), Tensor::of<bool>({3}, want));
  expect_close(cast(Tensor::of<bool>({3}, want), kFloat), f32({3}, {0, 1, 1}));
}

TEST(Cast, HalfTypesRoundToNearestEven) {
  expect_close(cast(cast(f32({3}, {1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 65520}), kHalf), kFloat), f32({3}, {1, 1 + 4 * 0x1p-11f, INFINITY}));
  expect_close(cast(cast(f32({2}, {1 + 0x1p-8f, 1 + 3 * 0x1p-8f}), kBfloat), kFloat), f32({2}, {1, 1 + 4 * 0x1p-8f}));
}

TEST(Cast, WhatDoesNotFitIsNoUndefinedBehaviour) {
  for (const float v : {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 0x1p63f, 0x1p64f, 0x1.00fp64f}) EXPECT_NO_THROW(cast(f32({1}, {v}), kInt32));
  const std::uint64_t most[] = {std::uint64_t{1} << 63};
  expect_close(cast(f32({1}, {0x1p63f}), kUint64), Tensor::of<std::uint64_t>({1}, most));
}

TEST(Cast, StringsAreRefused) { EXPECT_THROW(cast(f32({1}, {1}), kString), Unsupported); }

TEST(CastLike, TakesTheTypeAlone) {
  expect_close(run_node({.op = "CastLike", .attributes = {}, .operands = {f32({2}, {1.5f, -2}), i64({0}, {})}})[0], i64({2}, {1, -2}));
}

}  // namespace
}  // namespace tandem::test
