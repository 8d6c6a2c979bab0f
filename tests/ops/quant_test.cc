// The operators on 8-bit data: MatMulInteger, QLinearMatMul, ConvInteger, QLinearConv.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/base/error.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

using Ints = std::vector<std::int64_t>;

template <class T>
Tensor of(Shape shape, std::vector<T> values) {
  return Tensor::of<T>(std::move(shape), std::span<const T>(values));
}
Tensor u8(Shape shape, std::vector<std::uint8_t> values) { return of(std::move(shape), std::move(values)); }
Tensor i8(Shape shape, std::vector<std::int8_t> values) { return of(std::move(shape), std::move(values)); }
Tensor i32(Shape shape, std::vector<std::int32_t> values) { return of(std::move(shape), std::move(values)); }

Tensor run(const char* op, std::vector<Tensor> operands, Attributes a = {}) {
  return run_node({.op = op, .attributes = std::move(a), .operands = std::move(operands)})[0];
}

TEST(MatMulInteger, SubtractsTheZeroPoints) {
  const Tensor a = u8({2, 3}, {11, 7, 3, 10, 6, 2}), b = u8({3, 2}, {1, 4, 2, 5, 3, 6});
  EXPECT_EQ(run("MatMulInteger", {a, b, u8({}, {12}), u8({}, {0})}).to_ints(), (Ints{-38, -83, -44, -98}));
  EXPECT_EQ(run("MatMulInteger", {a, b}).to_ints(), (Ints{34, 97, 28, 82}));
  // Own zero points for the rows of A and the columns of B.
  EXPECT_EQ(run("MatMulInteger", {a, b, u8({2}, {0, 10}), u8({2}, {1, 2})}).to_ints(), (Ints{13, 55, -20, -44}));
  EXPECT_EQ(run("MatMulInteger", {i8({1, 2}, {-128, 127}), u8({2}, {255, 255})}).to_ints(), (Ints{-255}));
  EXPECT_EQ(run("MatMulInteger", {u8({2, 1, 2}, {1, 2, 3, 4}), i8({2, 1}, {-1, 1}), u8({}, {1})}).shape(), (Shape{2, 1, 1}));
  EXPECT_THROW(run("MatMulInteger", {a, b, u8({3}, {1, 2, 3})}), Unsupported);
  EXPECT_THROW(run("MatMulInteger", {a, b, i8({}, {1})}), InvalidModel);
  EXPECT_THROW(run("MatMulInteger", {f32({1, 1}, {1}), b}), InvalidModel);
}

TEST(QLinearMatMul, RoundsHalfToEvenAndSaturates) {
  const Tensor one = f32({}, {1}), half = f32({}, {0.5f}), zero = u8({}, {0});
  const auto y = [&](std::uint8_t a, const Tensor& y_zero) {
    return run("QLinearMatMul", {u8({1, 1}, {a}), half, zero, u8({1, 1}, {1}), one, zero, one, y_zero}).to_ints();
  };
  EXPECT_EQ(y(1, zero), Ints{0});
  EXPECT_EQ(y(3, zero), Ints{2});
  EXPECT_EQ(y(5, zero), Ints{2});
  EXPECT_EQ(y(255, u8({}, {200})), Ints{255});
  EXPECT_EQ(y(3, i8({}, {-128})), Ints{-126});
  EXPECT_EQ(run("QLinearMatMul", {u8({1, 1}, {0}), one, u8({}, {200}), u8({1, 1}, {200}), one, zero, one, i8({}, {5})}).to_ints(), Ints{-128});
  // A scale for each column.
  EXPECT_EQ(run("QLinearMatMul", {u8({1, 1}, {10}), one, zero, u8({1, 2}, {3, 3}), f32({2}, {1, 2}), u8({2}, {1, 0}), f32({}, {4}), zero}).to_ints(),
            (Ints{5, 15}));
}

TEST(ConvInteger, PadsWithTheZeroPoint) {
  const Tensor x = u8({1, 1, 3, 3}, {2, 3, 4, 5, 6, 7, 8, 9, 10}), w = u8({1, 1, 2, 2}, {1, 1, 1, 1});
  const Tensor y = run("ConvInteger", {x, w, u8({}, {1})});
  ASSERT_EQ(y.dtype(), DType::kI32);
  EXPECT_EQ(y.to_ints(), (Ints{12, 16, 24, 28}));
  Attributes padded;
  padded.set("pads", Ints{1, 1, 1, 1});
  EXPECT_EQ(run("ConvInteger", {x, w, u8({}, {1})}, padded).to_ints(), (Ints{1, 3, 5, 3, 5, 12, 16, 9, 11, 24, 28, 15, 7, 15, 17, 9}));
  EXPECT_THROW(run("ConvInteger", {x, u8({1, 2, 1, 1}, {1, 1})}), InvalidModel);
  EXPECT_THROW(run("ConvInteger", {x, u8({1, 1, 1}, {1})}), InvalidModel);
}

// Plain loops over every output and kernel cell, in 64 bits.
struct Problem {
  Shape x, w;
  Ints strides, dilations, pads;
  std::int64_t group;
};

Ints reference(const Problem& p, const Tensor& x, std::int64_t x_zero, const Tensor& w, const Ints& w_zero, const Shape& out) {
  const auto xs = x.to_ints(), ws = w.to_ints();
  const std::size_t r = p.w.size() - 2;
  const Shape kernel(p.w.begin() + 2, p.w.end());
  const auto x_strides = row_major_strides(p.x);
  Ints y, at(out.size(), 0);
  for (std::int64_t o = 0; o < elements(out); ++o) {
    std::int64_t sum = 0;
    for (std::int64_t c = 0; c < p.w[1]; ++c) {
      for (std::int64_t k = 0; k < elements(kernel); ++k) {
        const std::int64_t channel = at[1] / (p.w[0] / p.group) * p.w[1] + c;
        std::int64_t rest = k, offset = at[0] * x_strides[0] + channel * x_strides[1];
        bool inside = true;
        for (std::size_t d = r; d-- > 0;) {
          const std::int64_t i = at[2 + d] * p.strides[d] - p.pads[d] + rest % kernel[d] * p.dilations[d];
          rest /= kernel[d];
          inside &= i >= 0 && i < p.x[2 + d];
          offset += i * x_strides[2 + d];
        }
        if (inside) {
          sum += (xs[static_cast<std::size_t>(offset)] - x_zero) *
                 (ws[static_cast<std::size_t>((at[1] * p.w[1] + c) * elements(kernel) + k)] - w_zero[static_cast<std::size_t>(at[1])]);
        }
      }
    }
    y.push_back(sum);
    for (std::size_t d = out.size(); d-- > 0 && ++at[d] == out[d];) at[d] = 0;
  }
  return y;
}

TEST(QLinearConv, EqualsPlainLoops) {
  const Problem problems[] = {
      {{2, 4, 7, 6}, {6, 2, 3, 2}, {2, 1}, {1, 2}, {1, 0, 2, 1}, 2},
      {{1, 3, 11}, {3, 1, 3}, {3}, {2}, {3, 1}, 3},
      {{1, 2, 3, 4, 5}, {2, 2, 2, 1, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1, 1, 0, 2}, 1},
  };
  std::mt19937 engine(5);
  for (const Problem& p : problems) {
    std::vector<std::uint8_t> xs(static_cast<std::size_t>(elements(p.x)));
    std::vector<std::int8_t> ws(static_cast<std::size_t>(elements(p.w))), zeros(static_cast<std::size_t>(p.w[0]));
    std::vector<std::int32_t> bias(zeros.size());
    std::vector<float> scales(zeros.size());
    for (auto& v : xs) v = static_cast<std::uint8_t>(engine());
    for (auto& v : ws) v = static_cast<std::int8_t>(engine());
    for (auto& v : zeros) v = static_cast<std::int8_t>(engine() % 9);
    for (auto& v : bias) v = static_cast<std::int32_t>(engine() % 20000) - 10000;
    for (auto& v : scales) v = static_cast<float>(engine() % 100 + 1) / 64;
    const Tensor x = u8(p.x, xs), w = i8(p.w, ws), zero = i8({p.w[0]}, zeros);
    Attributes a;
    a.set("strides", p.strides);
    a.set("dilations", p.dilations);
    a.set("pads", p.pads);
    a.set("group", p.group);
    const Tensor sums = run("ConvInteger", {x, w, u8({}, {120}), zero}, a);
    const Ints want = reference(p, x, 120, w, zero.to_ints(), sums.shape());
    EXPECT_EQ(sums.to_ints(), want);
    const Tensor y = run("QLinearConv",
                         {x, f32({}, {0.25f}), u8({}, {120}), w, f32({p.w[0]}, scales), zero, f32({}, {64}), u8({}, {100}), i32({p.w[0]}, bias)}, a);
    const std::int64_t plane = elements(y.shape()) / y.shape()[0] / y.shape()[1];
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const auto m = static_cast<std::size_t>(i / plane % p.w[0]);
      const double exact = static_cast<double>(want[static_cast<std::size_t>(i)] + bias[m]) * 0.25 * static_cast<double>(scales[m]) / 64;
      ASSERT_EQ(y.to_ints()[static_cast<std::size_t>(i)], static_cast<std::int64_t>(std::clamp(std::nearbyint(exact) + 100, 0.0, 255.0)));
    }
  }
}

}  // namespace
}  // namespace tandem::test
