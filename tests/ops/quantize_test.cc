// QuantizeLinear DequantizeLinear DynamicQuantizeLinear
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "tests/support/graph_builder.h"
#include "tests/support/node_test.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

using U8 = std::uint8_t;
using I8 = std::int8_t;

Tensor scalar(float v) { return f32({}, {v}); }
Attributes axis_and_block(std::int64_t axis, std::int64_t block) { return attributes({{"axis", axis}, {"block_size", block}}); }

TEST(QuantizeLinear, RoundsHalfToEvenAndSaturates) {
  const Tensor x = f32({8}, {0.5f, 1.5f, 2.5f, -0.5f, -2.5f, 1000, -1000, NAN});
  expect_close(apply_op("QuantizeLinear", {x, scalar(1)}), typed<U8>({8}, {0, 2, 2, 0, 0, 255, 0, 0}));
  expect_close(apply_op("QuantizeLinear", {x, scalar(1), typed<U8>({}, {128})}), typed<U8>({8}, {128, 130, 130, 128, 126, 255, 0, 0}));
  expect_close(apply_op("QuantizeLinear", {x, scalar(1), typed<I8>({}, {1})}), typed<I8>({8}, {1, 3, 3, 1, -1, 127, -128, -128}));
  const Tensor wide = f32({3}, {70000, -70000, 32766.5f});
  expect_close(apply_op("QuantizeLinear", {wide, scalar(1), typed<std::int16_t>({}, {0})}), typed<std::int16_t>({3}, {32767, -32768, 32766}));
  expect_close(apply_op("QuantizeLinear", {wide, scalar(2), typed<std::uint16_t>({}, {65535})}), typed<std::uint16_t>({3}, {65535, 30535, 65535}));
}

TEST(QuantizeLinear, TypesOfOperandsAndOutput) {
  expect_close(apply_op("QuantizeLinear", {typed<std::int32_t>({2}, {7, -9}), scalar(2), typed<I8>({}, {0})}), typed<I8>({2}, {4, -4}));
  expect_close(apply_op("QuantizeLinear", {f32({1}, {-3}), scalar(1)}, attributes({{"output_dtype", std::int64_t{3}}})), typed<I8>({1}, {-3}));
  EXPECT_THROW(apply_op("QuantizeLinear", {f32({1}, {1}), scalar(1)}, attributes({{"output_dtype", std::int64_t{17}}})), Unsupported);
  EXPECT_THROW(apply_op("QuantizeLinear", {f32({1}, {1}), scalar(1), typed<I8>({}, {0})}, attributes({{"output_dtype", std::int64_t{2}}})),
               InvalidModel);
}

TEST(QuantizeLinear, OneScaleForEachIndexOfAnAxis) {
  const Tensor x = f32({2, 3}, {2, 4, 6, 8, 10, 12}), by_column = f32({3}, {1, 2, 3}), by_row = f32({2}, {2, 4});
  expect_close(apply_op("QuantizeLinear", {x, by_column, typed<U8>({3}, {0, 10, 20})}), typed<U8>({2, 3}, {2, 12, 22, 8, 15, 24}));
  expect_close(apply_op("QuantizeLinear", {x, by_row}, attributes({{"axis", std::int64_t{-2}}})), typed<U8>({2, 3}, {1, 2, 3, 2, 2, 3}));
  EXPECT_THROW(apply_op("QuantizeLinear", {x, by_row}), InvalidModel);
  EXPECT_THROW(apply_op("QuantizeLinear", {x, by_column, typed<U8>({}, {0})}), InvalidModel);
}

// Five columns in blocks of two: the last block has one.
TEST(QuantizeLinear, OneScaleForEachBlock) {
  const Tensor x = f32({2, 5}, {2, 4, 6, 8, 10, 12, 14, 16, 18, 20}), scale = f32({2, 3}, {1, 2, 5, 2, 1, 10});
  const Tensor want = typed<U8>({2, 5}, {2, 4, 3, 4, 2, 6, 7, 16, 18, 2});
  expect_close(apply_op("QuantizeLinear", {x, scale}, axis_and_block(1, 2)), want);
  expect_close(apply_op("DequantizeLinear", {want, scale}, axis_and_block(-1, 2)), x);
  const Tensor rows = f32({1, 5}, {1, 2, 2, 4, 5});  // both rows are one block, which may be longer
  expect_close(apply_op("QuantizeLinear", {x, rows}, axis_and_block(0, 7)), typed<U8>({2, 5}, {2, 2, 3, 2, 2, 12, 7, 8, 4, 4}));
  EXPECT_THROW(apply_op("QuantizeLinear", {x, scale}, axis_and_block(1, 3)), InvalidModel);
  EXPECT_THROW(apply_op("QuantizeLinear", {x, scale}, axis_and_block(1, -1)), InvalidModel);
}

// One scale may be [1] beside a zero point of shape [], and the other way round.
TEST(DequantizeLinear, OneElementIsOneElement) {
  expect_close(apply_op("DequantizeLinear", {typed<U8>({2}, {128, 130}), f32({1}, {0.5f}), typed<U8>({}, {128})}), f32({2}, {0, 1}));
  expect_close(apply_op("DequantizeLinear", {typed<U8>({2}, {128, 130}), scalar(0.5f), typed<U8>({1}, {128})}), f32({2}, {0, 1}));
}

TEST(DequantizeLinear, SubtractsTheZeroPointFirst) {
  expect_close(apply_op("DequantizeLinear", {typed<U8>({3}, {0, 128, 255}), scalar(0.5f), typed<U8>({}, {128})}), f32({3}, {-64, 0, 63.5f}));
  expect_close(apply_op("DequantizeLinear", {typed<I8>({2}, {-128, 127}), scalar(2)}), f32({2}, {-256, 254}));
  expect_close(apply_op("DequantizeLinear", {typed<std::uint16_t>({1}, {65535}), scalar(1), typed<std::uint16_t>({}, {1})}), f32({1}, {65534}));
  expect_close(apply_op("DequantizeLinear", {typed<std::int16_t>({1}, {-32768}), scalar(1), typed<std::int16_t>({}, {1})}), f32({1}, {-32769}));
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  expect_close(apply_op("DequantizeLinear", {typed<std::int32_t>({1}, {kLeast}), scalar(1), typed<std::int32_t>({}, {1})}), f32({1}, {-0x1p31f}));
  expect_close(apply_op("DequantizeLinear", {typed<U8>({2, 2}, {1, 2, 3, 4}), f32({2}, {1, 10})}, attributes({{"axis", std::int64_t{0}}})),
               f32({2, 2}, {1, 2, 30, 40}));
}

TEST(Quantize, AnyLayout) {
  const Tensor x = random_f32({2, 5, 3, 4}, 11), scale = f32({5}, {0.01f, 0.02f, 0.03f, 0.04f, 0.05f}), zero = typed<U8>({5}, {1, 20, 30, 40, 50});
  expect_layouts_agree({.op = "QuantizeLinear", .attributes = {}, .operands = {x, scale, zero}, .constant = {1, 2}});
  const Tensor q = apply_op("QuantizeLinear", {x, scale, zero});
  expect_layouts_agree({.op = "DequantizeLinear", .attributes = {}, .operands = {q, scale, zero}, .constant = {1, 2}});
  Tensor blocks = random_f32({2, 2, 3, 4}, 12);
  for (float& v : blocks.as_mutable<float>()) v = std::abs(v) + 0.01f;
  expect_layouts_agree({.op = "QuantizeLinear", .attributes = axis_and_block(1, 3), .operands = {x, blocks}, .constant = {1}});
  expect_layouts_agree({.op = "DynamicQuantizeLinear", .attributes = {}, .operands = {x}, .outputs = 3});
}

std::vector<Tensor> dynamic(const Tensor& x) { return run_node({.op = "DynamicQuantizeLinear", .attributes = {}, .operands = {x}, .outputs = 3}); }

TEST(DynamicQuantizeLinear, TheRangeHoldsZero) {
  const auto mixed = dynamic(f32({4}, {-1, 0, 1, 4.1f}));  // scale 0.02, zero point 50
  expect_close(mixed[0], typed<U8>({4}, {0, 50, 100, 255}));
  expect_close(mixed[1], f32({}, {0.02f}));
  expect_close(mixed[2], typed<U8>({}, {50}));
  const auto positive = dynamic(f32({2}, {2.55f, 5.1f}));
  expect_close(positive[0], typed<U8>({2}, {128, 255}));
  expect_close(positive[2], typed<U8>({}, {0}));
  const auto negative = dynamic(f32({2}, {-5.1f, -1}));
  expect_close(negative[0], typed<U8>({2}, {0, 205}));
  expect_close(negative[2], typed<U8>({}, {255}));
}

TEST(DynamicQuantizeLinear, ZerosNothingAndNan) {
  const auto zeros = dynamic(f32({2}, {0, 0}));
  expect_close(zeros[0], typed<U8>({2}, {0, 0}));
  expect_close(zeros[1], f32({}, {1}));
  expect_close(dynamic(Tensor(DType::kF32, {0}))[1], f32({}, {1}));
  expect_close(dynamic(f32({3}, {NAN, 2.55f, 0}))[0], typed<U8>({3}, {0, 255, 0}));
}

}  // namespace
}  // namespace tandem::test
