#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

TEST(Variadic, OneTwoAndManyOperands) {
  const Tensor a = f32({3}, {3, 2, 1}), b = f32({3}, {1, 4, 4}), c = f32({3}, {2, 5, 3});
  expect_close(apply_op("Max", {a, b, c}), f32({3}, {3, 5, 4}));
  expect_close(apply_op("Min", {a, b, c}), f32({3}, {1, 2, 1}));
  expect_close(apply_op("Sum", {a, b, c}), f32({3}, {6, 11, 8}));
  expect_close(apply_op("Mean", {a, b, c}), f32({3}, {2, 11.0f / 3, 8.0f / 3}));
  expect_close(apply_op("Mean", {a, b}), f32({3}, {2, 3, 2.5}));
  for (const char* op : {"Max", "Min", "Sum", "Mean"}) expect_close(apply_op(op, {a}), a);
  expect_close(apply_op("Sum", std::vector<Tensor>(40, a)), f32({3}, {120, 80, 40}));
}

TEST(Variadic, BroadcastsAndKeepsIntegerTypes) {
  expect_close(apply_op("Max", {i64({2, 1}, {1, 9}), i64({3}, {0, 5, 10}), i64({}, {2})}), i64({2, 3}, {2, 5, 10, 9, 9, 10}));
  expect_close(apply_op("Min", {typed<std::uint8_t>({2}, {1, 200}), typed<std::uint8_t>({2}, {100, 100})}), typed<std::uint8_t>({2}, {1, 100}));
  EXPECT_THROW(apply_op("Sum", {i64({1}, {1}), i64({1}, {1})}), InvalidModel);
  EXPECT_THROW(apply_op("Max", {f32({1}, {1}), i64({1}, {1})}), InvalidModel);
}

TEST(Variadic, NanWinsFromEitherSide) {
  for (const char* op : {"Max", "Min"}) {
    expect_close(apply_op(op, {f32({2}, {NAN, 1}), f32({2}, {1, NAN})}), f32({2}, {NAN, NAN}));
    expect_close(apply_op(op, {f32({2}, {NAN, 1}), f32({2}, {1, NAN}), f32({2}, {1, 1})}), f32({2}, {NAN, NAN}));
  }
}

TEST(Variadic, LayoutsAndStorageChangeNothing) {
  for (const char* op : {"Max", "Min", "Sum", "Mean"}) {
    const NodeCase c{.op = op, .attributes = {}, .operands = {random_f32({2, 3, 5, 4}, 1), random_f32({3, 1, 1}, 2), random_f32({2, 3, 5, 4}, 3)}};
    expect_layouts_agree(c);
    expect_bf16_storage_rounds_once(c);
    expect_layouts_agree({.op = op, .attributes = {}, .operands = std::vector<Tensor>(9, c.operands[0])});
  }
}

}  // namespace
}  // namespace tandem::test
