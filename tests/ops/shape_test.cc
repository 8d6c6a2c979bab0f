#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

Tensor one(NodeCase c) { return run_node(c)[0]; }

TEST(Shape, StartAndEndAreClamped) {
  const Tensor x(DType::kI8, {2, 3, 4});
  Attributes a;
  expect_close(one({.op = "Shape", .attributes = a, .operands = {x}}), i64({3}, {2, 3, 4}));
  a.set("start", std::int64_t{-2});
  expect_close(one({.op = "Shape", .attributes = a, .operands = {x}}), i64({2}, {3, 4}));
  a.set("end", std::int64_t{-1});
  expect_close(one({.op = "Shape", .attributes = a, .operands = {x}}), i64({1}, {3}));
  a.set("start", std::int64_t{9});
  expect_close(one({.op = "Shape", .attributes = a, .operands = {x}}), i64({0}, {}));
  expect_close(one({.op = "Shape", .attributes = {}, .operands = {f32({}, {1})}}), i64({0}, {}));
}

TEST(Size, CountsElements) {
  expect_close(one({.op = "Size", .attributes = {}, .operands = {Tensor(DType::kBool, {2, 3, 4})}}), i64({}, {24}));
  expect_close(one({.op = "Size", .attributes = {}, .operands = {Tensor(DType::kF32, {2, 0})}}), i64({}, {0}));
  expect_close(one({.op = "Size", .attributes = {}, .operands = {f32({}, {1})}}), i64({}, {1}));
}

TEST(Constant, EveryForm) {
  const auto constant = [](const char* name, AttributeValue v) {
    Attributes a;
    a.set(name, std::move(v));
    return one({.op = "Constant", .attributes = a, .operands = {}});
  };
  expect_close(constant("value_float", 2.5f), f32({}, {2.5f}));
  expect_close(constant("value_floats", std::vector<float>{1, 2}), f32({2}, {1, 2}));
  expect_close(constant("value_int", std::int64_t{-7}), i64({}, {-7}));
  expect_close(constant("value_ints", std::vector<std::int64_t>{1, -1}), i64({2}, {1, -1}));
  expect_close(constant("value", f32({2, 1}, {3, 4})), f32({2, 1}, {3, 4}));
  EXPECT_THROW(constant("value_string", std::string("x")), Unsupported);
}

TEST(ConstantOfShape, ValueAndDefault) {
  const auto filled = [](std::vector<std::int64_t> shape, Attributes a) {
    return one({.op = "ConstantOfShape",
                .attributes = a,
                .operands = {i64({static_cast<std::int64_t>(shape.size())}, shape)},
                .outputs = 1,
                .constant = {0}});
  };
  expect_close(filled({2, 2}, {}), f32({2, 2}, {0, 0, 0, 0}));
  expect_close(filled({}, {}), f32({}, {0}));
  expect_close(filled({2, 0}, {}), f32({2, 0}, {}));
  Attributes a;
  a.set("value", i64({1}, {5}));
  expect_close(filled({3}, a), i64({3}, {5, 5, 5}));
  EXPECT_THROW(filled({-1}, {}), InvalidModel);
}

TEST(Range, UpDownAndEmpty) {
  const auto range = [](Tensor a, Tensor b, Tensor c) {
    return one({.op = "Range", .attributes = {}, .operands = {a, b, c}, .outputs = 1, .constant = {0, 1, 2}});
  };
  const auto i = [](std::int64_t v) { return i64({}, {v}); };
  const auto f = [](float v) { return f32({}, {v}); };
  expect_close(range(i(0), i(5), i(2)), i64({3}, {0, 2, 4}));
  expect_close(range(i(10), i(4), i(-2)), i64({3}, {10, 8, 6}));
  expect_close(range(i(3), i(3), i(1)), i64({0}, {}));
  expect_close(range(i(INT64_MAX - 1), i(INT64_MAX), i(5)), i64({1}, {INT64_MAX - 1}));
  expect_close(range(i(INT64_MIN), i(INT64_MAX), i(INT64_MAX)), i64({3}, {INT64_MIN, -1, INT64_MAX - 1}));
  expect_close(range(f(1), f(2), f(0.5f)), f32({2}, {1, 1.5f}));
  EXPECT_THROW(range(i(0), i(5), i(0)), InvalidModel);
  EXPECT_THROW(range(f(0), f(5), f(0)), InvalidModel);
  EXPECT_THROW(range(i(INT64_MIN), i(INT64_MAX), i(1)), InvalidModel);
}

}  // namespace
}  // namespace tandem::test
