#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/error.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Logic, ComparesFloats) {
  const Tensor a = f32({4}, {1, 2, NAN, -0.0f}), b = f32({4}, {2, 2, NAN, 0});
  expect_close(apply_op("Equal", {a, b}), bools({4}, {false, true, false, true}));
  expect_close(apply_op("Less", {a, b}), bools({4}, {true, false, false, false}));
  expect_close(apply_op("LessOrEqual", {a, b}), bools({4}, {true, true, false, true}));
  expect_close(apply_op("Greater", {b, a}), bools({4}, {true, false, false, false}));
  expect_close(apply_op("GreaterOrEqual", {a, b}), bools({4}, {false, true, false, true}));
}

TEST(Logic, ComparesAllIntegersExactly) {
  const std::int64_t big = (std::int64_t{1} << 53) + 1;  // not a double
  expect_close(apply_op("Equal", {i64({2}, {big, big}), i64({2}, {big - 1, big})}), bools({2}, {false, true}));
  expect_close(apply_op("Greater", {typed<std::uint64_t>({1}, {~std::uint64_t{0}}), typed<std::uint64_t>({1}, {1})}), bools({1}, {true}));
  expect_close(apply_op("Less", {typed<std::int8_t>({2, 1}, {-1, 1}), typed<std::int8_t>({2}, {0, 1})}), bools({2, 2}, {true, true, false, false}));
  expect_close(apply_op("Equal", {bools({2}, {true, false}), bools({2}, {true, true})}), bools({2}, {true, false}));
  EXPECT_THROW(apply_op("Less", {bools({1}, {true}), bools({1}, {true})}), InvalidModel);
  EXPECT_THROW(apply_op("Equal", {f32({1}, {1}), i64({1}, {1})}), InvalidModel);
}

TEST(Logic, BooleanOperatorsBroadcast) {
  const Tensor a = bools({2, 1}, {true, false}), b = bools({2}, {true, false});
  expect_close(apply_op("And", {a, b}), bools({2, 2}, {true, false, false, false}));
  expect_close(apply_op("Or", {a, b}), bools({2, 2}, {true, true, true, false}));
  expect_close(apply_op("Xor", {a, b}), bools({2, 2}, {false, true, true, false}));
  expect_close(apply_op("Not", {b}), bools({2}, {false, true}));
  EXPECT_THROW(apply_op("And", {f32({1}, {1}), f32({1}, {1})}), InvalidModel);
}

TEST(Logic, WhereTakesEveryType) {
  const Tensor c = bools({2, 1}, {true, false});
  expect_close(apply_op("Where", {c, f32({2}, {1, NAN}), f32({}, {9})}), f32({2, 2}, {1, NAN, 9, 9}));
  expect_close(apply_op("Where", {c, i64({1}, {1}), i64({1}, {2})}), i64({2, 1}, {1, 2}));
  expect_close(apply_op("Where", {c, bools({1}, {true}), bools({1}, {false})}), bools({2, 1}, {true, false}));
  expect_close(apply_op("Where", {c, typed<std::int16_t>({1}, {-1}), typed<std::int16_t>({1}, {2})}), typed<std::int16_t>({2, 1}, {-1, 2}));
  EXPECT_THROW(apply_op("Where", {f32({1}, {1}), f32({1}, {1}), f32({1}, {1})}), InvalidModel);
  EXPECT_THROW(apply_op("Where", {c, f32({1}, {1}), i64({1}, {1})}), InvalidModel);
}

TEST(Logic, FindsNanAndInfinity) {
  const Tensor x = f32({4}, {1, NAN, kInf, -kInf});
  expect_close(apply_op("IsNaN", {x}), bools({4}, {false, true, false, false}));
  expect_close(apply_op("IsInf", {x}), bools({4}, {false, false, true, true}));
  Attributes positive, negative;
  positive.set("detect_negative", std::int64_t{0});
  negative.set("detect_positive", std::int64_t{0});
  expect_close(apply_op("IsInf", {x}, positive), bools({4}, {false, false, true, false}));
  expect_close(apply_op("IsInf", {x}, negative), bools({4}, {false, false, false, true}));
  expect_close(apply_op("IsNaN", {typed<double>({2}, {NAN, 0})}), bools({2}, {true, false}));
  EXPECT_THROW(apply_op("IsNaN", {i64({1}, {1})}), InvalidModel);
}

TEST(Logic, LayoutsAndStorageChangeNothing) {
  const Tensor a = random_f32({2, 3, 5, 4}, 1), b = random_f32({3, 1, 1}, 2);
  for (const char* op : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
    expect_layouts_agree({.op = op, .attributes = {}, .operands = {a, b}});
  const NodeCase where{.op = "Where", .attributes = {}, .operands = {apply_op("Less", {a, b}), a, b}};
  expect_layouts_agree(where);
  expect_bf16_storage_rounds_once(where);
}

}  // namespace
}  // namespace tandem::test
