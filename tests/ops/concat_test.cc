#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

const EvaluateOptions kPitched{.layout = Layout::kChannelsLast, .extra_pitch = 5, .precision = Precision::kF32, .store_bf16 = false, .cpu = {}};

Attributes integer(const char* name, std::int64_t v) {
  Attributes a;
  a.set(name, v);
  return a;
}

Tensor concat(std::vector<Tensor> x, std::int64_t axis, EvaluateOptions o = {}, std::vector<std::size_t> constant = {}) {
  return run_node({.op = "Concat", .attributes = integer("axis", axis), .operands = std::move(x), .outputs = 1, .constant = std::move(constant)},
                  o)[0];
}

TEST(Concat, AxesAndEmptyOperands) {
  const Tensor a = f32({2, 2}, {1, 2, 3, 4}), b = f32({2, 1}, {5, 6});
  expect_close(concat({a, b}, -1), f32({2, 3}, {1, 2, 5, 3, 4, 6}));
  expect_close(concat({a, a}, 0), f32({4, 2}, {1, 2, 3, 4, 1, 2, 3, 4}));
  expect_close(concat({a}, -1), a);
  expect_close(concat({Tensor(DType::kF32, {2, 0}), a}, 1), a);
  expect_close(concat({f32({0}, {}), f32({0}, {})}, 0), f32({0}, {}));
  EXPECT_THROW(concat({a, b}, 0), InvalidModel);
  EXPECT_THROW(concat({a, f32({2}, {1, 2})}, 1), InvalidModel);
  EXPECT_THROW(concat({a, i64({2, 2}, {1, 2, 3, 4})}, 0), InvalidModel);
  EXPECT_THROW(concat({f32({}, {1}), f32({}, {1})}, 0), InvalidModel);
  EXPECT_THROW(concat({a, b}, 2), InvalidModel);
}

TEST(Concat, ChannelsLastAndConstantsUnderBf16) {
  const Tensor a = random_f32({2, 3, 4, 5}, 1), b = random_f32({2, 7, 4, 5}, 2);
  for (const std::int64_t axis : {1, -3}) expect_close(concat({a, b, a}, axis, kPitched), concat({a, b, a}, axis), 0, 0);
  EvaluateOptions half = kPitched;
  half.store_bf16 = true;
  expect_close(concat({a, b}, 1, half, {1}), concat({a, b}, 1), 1.0 / 256, 0);
}

std::vector<Tensor> split(const Tensor& x, Attributes a, std::size_t outputs, std::vector<std::int64_t> sizes = {}, EvaluateOptions o = {}) {
  NodeCase c{.op = "Split", .attributes = std::move(a), .operands = {x}, .outputs = outputs, .constant = {1}};
  if (!sizes.empty()) c.operands.push_back(i64({static_cast<std::int64_t>(sizes.size())}, sizes));
  return run_node(c, o);
}

std::vector<std::int64_t> parts(std::int64_t size, std::int64_t count) {
  std::vector<std::int64_t> sizes;
  for (const Tensor& t : split(random_f32({size}, 1), integer("num_outputs", count), static_cast<std::size_t>(count))) sizes.push_back(t.size());
  return sizes;
}

TEST(Split, NumOutputsTakesTheCeiling) {
  EXPECT_EQ(parts(7, 3), (std::vector<std::int64_t>{3, 3, 1}));
  EXPECT_EQ(parts(10, 3), (std::vector<std::int64_t>{4, 4, 2}));
  EXPECT_EQ(parts(6, 3), (std::vector<std::int64_t>{2, 2, 2}));
  EXPECT_THROW(parts(5, 4), InvalidModel);
  EXPECT_THROW(split(random_f32({4}, 1), integer("num_outputs", 1), 2), InvalidModel);
  EXPECT_THROW(split(random_f32({4}, 1), integer("num_outputs", INT64_MAX), 2), InvalidModel);
}

TEST(Split, SizesMustAddUp) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto y = split(x, integer("axis", -1), 3, {1, 0, 2});
  expect_close(y[0], f32({2, 1}, {1, 4}));
  expect_close(y[1], f32({2, 0}, {}));
  expect_close(y[2], f32({2, 2}, {2, 3, 5, 6}));
  EXPECT_THROW(split(x, integer("axis", 1), 2, {1, 1}), InvalidModel);
  EXPECT_THROW(split(x, integer("axis", 1), 2, {4, -1}), InvalidModel);
  EXPECT_THROW(split(x, integer("axis", 1), 3, {1, 2}), InvalidModel);
  EXPECT_EQ(split(x, {}, 2)[1].shape(), (Shape{1, 3}));
  EXPECT_THROW(split(x, integer("axis", 1), 2), InvalidModel);
}

TEST(Split, ChannelsLast) {
  const Tensor x = random_f32({2, 6, 3, 2}, 1);
  const auto plain = split(x, integer("axis", 1), 2, {4, 2}), last = split(x, integer("axis", 1), 2, {4, 2}, kPitched);
  expect_close(last[0], plain[0], 0, 0);
  expect_close(last[1], plain[1], 0, 0);
  expect_close(concat({plain[0], plain[1]}, 1), x, 0, 0);
}

}  // namespace
}  // namespace tandem::test
