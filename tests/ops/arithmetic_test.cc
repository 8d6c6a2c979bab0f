#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/error.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

Attributes fmod_attribute(std::int64_t v) {
  Attributes a;
  a.set("fmod", v);
  return a;
}

TEST(Arithmetic, BroadcastsAsNumpy) {
  const Tensor column = f32({2, 1}, {1, 10}), row = f32({3}, {1, 2, 3});
  expect_close(apply_op("Add", {column, row}), f32({2, 3}, {2, 3, 4, 11, 12, 13}));
  expect_close(apply_op("Sub", {row, column}), f32({2, 3}, {0, 1, 2, -9, -8, -7}));
  expect_close(apply_op("Mul", {column, f32({}, {3})}), f32({2, 1}, {3, 30}));
  expect_close(apply_op("Div", {f32({1, 1, 2}, {6, 9}), f32({2, 1}, {2, 3})}), f32({1, 2, 2}, {3, 4.5, 2, 3}));
  expect_close(apply_op("Add", {f32({}, {1}), f32({}, {2})}), f32({}, {3}));
  expect_close(apply_op("Add", {f32({0, 3}, {}), f32({1, 3}, {1, 2, 3})}), f32({0, 3}, {}));
}

TEST(Arithmetic, RefusesShapesAndTypesThatDoNotFit) {
  EXPECT_THROW(apply_op("Add", {f32({2}, {1, 2}), f32({3}, {1, 2, 3})}), InvalidModel);
  EXPECT_THROW(apply_op("Add", {f32({1}, {1}), i64({1}, {1})}), InvalidModel);
  EXPECT_THROW(apply_op("Mul", {bools({1}, {true}), bools({1}, {true})}), InvalidModel);
}

TEST(Arithmetic, IntegersWrapAround) {
  expect_close(apply_op("Add", {typed<std::int8_t>({2}, {127, -128}), typed<std::int8_t>({2}, {1, -1})}), typed<std::int8_t>({2}, {-128, 127}));
  expect_close(apply_op("Sub", {typed<std::uint8_t>({1}, {3}), typed<std::uint8_t>({1}, {5})}), typed<std::uint8_t>({1}, {254}));
  expect_close(apply_op("Mul", {typed<std::uint16_t>({1}, {65535}), typed<std::uint16_t>({1}, {65535})}), typed<std::uint16_t>({1}, {1}));
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max(), kMin = std::numeric_limits<std::int64_t>::min();
  expect_close(apply_op("Add", {i64({1}, {kMax}), i64({1}, {1})}), i64({1}, {kMin}));
  expect_close(apply_op("Mul", {typed<std::int32_t>({1}, {1 << 30}), typed<std::int32_t>({1}, {4})}), typed<std::int32_t>({1}, {0}));
}

TEST(Arithmetic, IntegerDivisionTruncatesAndNeverTraps) {
  constexpr auto kMin = std::numeric_limits<std::int32_t>::min();
  expect_close(apply_op("Div", {typed<std::int32_t>({6}, {7, -7, 7, -7, 5, kMin}), typed<std::int32_t>({6}, {2, 2, -2, -2, 0, -1})}),
               typed<std::int32_t>({6}, {3, -3, -3, 3, 0, kMin}));
  expect_close(apply_op("Div", {typed<std::uint64_t>({1}, {~std::uint64_t{0}}), typed<std::uint64_t>({1}, {2})}),
               typed<std::uint64_t>({1}, {std::numeric_limits<std::int64_t>::max()}));
  expect_close(apply_op("Div", {f32({3}, {1, -1, 0}), f32({3}, {0, 0, 0})}), f32({3}, {kInf, -kInf, NAN}));
}

TEST(Arithmetic, ModHasTheDivisorsSignFmodTheDividends) {
  const auto a = i64({6}, {-4, 7, 5, 4, -7, 8}), b = i64({6}, {2, -3, 8, -2, 3, 5});
  expect_close(apply_op("Mod", {a, b}), i64({6}, {0, -2, 5, 0, 2, 3}));
  expect_close(apply_op("Mod", {a, b}, fmod_attribute(1)), i64({6}, {0, 1, 5, 0, -1, 3}));
  expect_close(
      apply_op("Mod", {f32({6}, {-4.3f, 7.2f, 5.0f, 4.3f, -7.2f, 8.0f}), f32({6}, {2.1f, -3.4f, 8.0f, -2.1f, 3.4f, 5.0f})}, fmod_attribute(1)),
      f32({6}, {-0.1f, 0.4f, 5.0f, 0.1f, -0.4f, 3.0f}), 1e-5, 1e-6);
  expect_close(apply_op("Mod", {typed<std::int8_t>({3}, {-128, 5, -128}), typed<std::int8_t>({3}, {-1, 0, 100})}),
               typed<std::int8_t>({3}, {0, 0, 72}));
  expect_close(apply_op("Mod", {typed<std::uint8_t>({1}, {200}), typed<std::uint8_t>({1}, {7})}), typed<std::uint8_t>({1}, {4}));
  EXPECT_THROW(apply_op("Mod", {f32({1}, {1}), f32({1}, {1})}), InvalidModel);
  EXPECT_THROW(apply_op("Mod", {i64({1}, {1}), i64({1}, {1})}, fmod_attribute(2)), InvalidModel);
}

TEST(Arithmetic, PowTakesAnyExponentType) {
  expect_close(apply_op("Pow", {f32({3}, {1, 2, 3}), f32({3}, {4, 5, 6})}), f32({3}, {1, 32, 729}));
  expect_close(apply_op("Pow", {f32({3}, {1, 2, 3}), i64({3}, {4, -1, 6})}), f32({3}, {1, 0.5, 729}));
  expect_close(apply_op("Pow", {typed<std::int32_t>({3}, {1, 2, 3}), f32({3}, {4, 5, 6})}), typed<std::int32_t>({3}, {1, 32, 729}));
  expect_close(apply_op("Pow", {i64({6}, {3, 2, -1, 1, 0, -2}), i64({6}, {39, -1, -3, -9, 0, 3})}),
               i64({6}, {4052555153018976267, 0, -1, 1, 1, -8}));  // 3^39 is above 2^53
  expect_close(apply_op("Pow", {typed<double>({2, 1}, {2, 4}), typed<std::uint8_t>({2}, {1, 3})}), typed<double>({2, 2}, {2, 8, 4, 64}));
  EXPECT_THROW(apply_op("Pow", {typed<std::uint8_t>({1}, {2}), f32({1}, {2})}), InvalidModel);
}

TEST(Arithmetic, PowWithConstantSmallExponents) {
  for (const float e : {2.0f, 3.0f, 0.5f, 1.0f}) {
    const auto x = f32({4}, {0.5f, 1.5f, 2.0f, 3.0f});
    Tensor want(DType::kF32, {4});
    for (std::size_t i = 0; i < 4; ++i) want.as_mutable<float>()[i] = static_cast<float>(std::pow(static_cast<double>(x.as<float>()[i]), e));
    expect_close(run_node({.op = "Pow", .attributes = {}, .operands = {x, f32({}, {e})}, .outputs = 1, .constant = {1}})[0], want, 3e-7, 0);
  }
}

TEST(Arithmetic, LayoutsAndStorageChangeNothing) {
  for (const char* op : {"Add", "Sub", "Mul", "Div"}) {
    for (const Shape& other : {Shape{2, 5, 6, 7}, Shape{1, 5, 1, 1}, Shape{7}, Shape{}, Shape{2, 1, 6, 7}}) {
      const NodeCase c{.op = op, .attributes = {}, .operands = {random_f32({2, 5, 6, 7}, 3), random_f32(other, 4)}};
      expect_layouts_agree(c);
      expect_bf16_storage_rounds_once(c);
    }
  }
  expect_layouts_agree({.op = "Pow", .attributes = {}, .operands = {f32({1, 2, 2}, {1, 2, 3, 4}), i64({2, 1}, {2, 3})}});
}

TEST(Arithmetic, HalfPrecisionComputesInFloat) {
  const Tensor a = typed<Float16>({2}, {Float16(2.5f), Float16(1000.0f)}), b = typed<Float16>({2}, {Float16(0.25f), Float16(100.0f)});
  expect_close(apply_op("Mul", {a, b}), typed<Float16>({2}, {Float16(0.625f), Float16(kInf)}));
}

TEST(Arithmetic, LargeTensorsAreCutInTasks) {
  const Tensor a = random_f32({3, 40000}, 5), b = random_f32({3, 40000}, 6);
  const Tensor sum = apply_op("Add", {a, b});
  for (std::size_t i = 0; i < 120000; i += 7) ASSERT_EQ(sum.as<float>()[i], a.as<float>()[i] + b.as<float>()[i]);
}

}  // namespace
}  // namespace tandem::test
