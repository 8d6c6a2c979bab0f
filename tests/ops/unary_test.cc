#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/error.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Unary, FloatFunctionsAgreeWithDoublePrecision) {
  struct Case {
    const char* op;
    double (*f)(double);
    float scale, shift;
  };
  const Case cases[] = {
      {"Sqrt", [](double x) { return std::sqrt(x); }, 50, 50},
      {"Exp", [](double x) { return std::exp(x); }, 80, 0},
      {"Log", [](double x) { return std::log(x); }, 50, 50.5f},
      {"Reciprocal", [](double x) { return 1 / x; }, 4, 5},
      {"Floor", [](double x) { return std::floor(x); }, 9, 0},
      {"Ceil", [](double x) { return std::ceil(x); }, 9, 0},
      {"Sin", [](double x) { return std::sin(x); }, 30, 0},
      {"Cos", [](double x) { return std::cos(x); }, 30, 0},
      {"Neg", [](double x) { return -x; }, 3, 0},
      {"Abs", [](double x) { return std::abs(x); }, 3, 0},
  };
  for (const Case& c : cases) {
    Tensor x = random_f32({2, 5, 31}, 7), want(DType::kF32, x.shape()), wide(DType::kF64, x.shape()), want_wide(DType::kF64, x.shape());
    for (std::size_t i = 0; i < 310; ++i) {
      float& v = x.as_mutable<float>()[i];
      v = v * c.scale + c.shift;
      wide.as_mutable<double>()[i] = v;
      want_wide.as_mutable<double>()[i] = c.f(v);
      want.as_mutable<float>()[i] = static_cast<float>(c.f(v));
    }
    SCOPED_TRACE(c.op);
    expect_close(apply_op(c.op, {x}), want, 1e-6, 1e-7);
    expect_close(apply_op(c.op, {wide}), want_wide, 1e-14, 1e-15);
    expect_layouts_agree({.op = c.op, .attributes = {}, .operands = {x}});
    EXPECT_THROW(apply_op(c.op, {bools({1}, {true})}), InvalidModel);
  }
}

TEST(Unary, EdgesOfTheRange) {
  expect_close(apply_op("Exp", {f32({5}, {-kInf, kInf, NAN, 89, -104})}), f32({5}, {0, kInf, NAN, kInf, 0}), 0, 0);
  expect_close(apply_op("Log", {f32({4}, {0, -1, kInf, 1e-40f})}), f32({4}, {-kInf, NAN, kInf, -92.10340372f}), 1e-6, 0);
  expect_close(apply_op("Sqrt", {f32({3}, {-1, 0, kInf})}), f32({3}, {NAN, 0, kInf}));
  expect_close(apply_op("Reciprocal", {f32({2}, {0, kInf})}), f32({2}, {kInf, 0}));
  EXPECT_TRUE(std::signbit(apply_op("Neg", {f32({}, {0})}).as<float>()[0]));
}

TEST(Unary, RoundGoesToEven) {
  expect_close(apply_op("Round", {f32({9}, {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.9f, 2.3f, -2.7f})}), f32({9}, {0, 2, 2, 0, -2, -2, 1, 2, -3}), 0, 0);
  expect_close(apply_op("Round", {f32({3}, {8388609.0f, kInf, NAN})}), f32({3}, {8388609.0f, kInf, NAN}), 0, 0);
  EXPECT_THROW(apply_op("Round", {i64({1}, {1})}), InvalidModel);
}

TEST(Unary, IntegersAndSigns) {
  constexpr auto kMin = std::numeric_limits<std::int8_t>::min();
  expect_close(apply_op("Neg", {typed<std::int8_t>({3}, {5, -7, kMin})}), typed<std::int8_t>({3}, {-5, 7, kMin}));
  expect_close(apply_op("Abs", {typed<std::int8_t>({3}, {5, -7, kMin})}), typed<std::int8_t>({3}, {5, 7, kMin}));
  expect_close(apply_op("Abs", {typed<std::uint32_t>({1}, {4000000000u})}), typed<std::uint32_t>({1}, {4000000000u}));
  expect_close(apply_op("Sign", {i64({3}, {-9, 0, 4})}), i64({3}, {-1, 0, 1}));
  expect_close(apply_op("Sign", {f32({5}, {-9, 0, 4, kInf, NAN})}), f32({5}, {-1, 0, 1, 1, NAN}));
  EXPECT_THROW(apply_op("Neg", {typed<std::uint8_t>({1}, {1})}), InvalidModel);
}

TEST(Unary, RankZeroAndNothing) {
  expect_close(apply_op("Exp", {f32({}, {0})}), f32({}, {1}));
  expect_close(apply_op("Exp", {f32({2, 0}, {})}), f32({2, 0}, {}));
}

}  // namespace
}  // namespace tandem::test
