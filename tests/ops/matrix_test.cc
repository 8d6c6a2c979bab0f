#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

const Tensor kSquare = f32({2, 2}, {1, 2, 3, 4});

Tensor gemm(const Attributes& a, std::vector<Tensor> operands, std::vector<std::size_t> constant = {}) {
  return run_node({.op = "Gemm", .attributes = a, .operands = std::move(operands), .constant = std::move(constant)})[0];
}
Tensor matmul(const Tensor& a, const Tensor& b, std::vector<std::size_t> constant = {}) {
  return run_node({.op = "MatMul", .attributes = {}, .operands = {a, b}, .constant = std::move(constant)})[0];
}

Attributes both_transposed() {
  Attributes a;
  a.set("alpha", 2.0f);
  a.set("beta", 0.5f);
  a.set("transA", std::int64_t{1});
  a.set("transB", std::int64_t{1});
  return a;
}

TEST(Gemm, BroadcastsCInEveryForm) {
  for (const std::vector<std::size_t>& constant : {std::vector<std::size_t>{}, {1}, {1, 2}}) {
    expect_close(gemm(both_transposed(), {kSquare, kSquare, f32({}, {10})}, constant), f32({2, 2}, {19, 35, 25, 49}));
    expect_close(gemm(both_transposed(), {kSquare, kSquare, f32({1}, {10})}, constant), f32({2, 2}, {19, 35, 25, 49}));
    expect_close(gemm(both_transposed(), {kSquare, kSquare, f32({2, 1}, {10, 20})}, constant), f32({2, 2}, {19, 35, 30, 54}));
    expect_close(gemm(both_transposed(), {kSquare, kSquare, f32({1, 2}, {10, 20})}, constant), f32({2, 2}, {19, 40, 25, 54}));
    expect_close(gemm(both_transposed(), {kSquare, kSquare, f32({2}, {10, 20})}, constant), f32({2, 2}, {19, 40, 25, 54}));
    expect_close(gemm(both_transposed(), {kSquare, kSquare, f32({2, 2}, {2, 4, 6, 8})}, constant), f32({2, 2}, {15, 32, 23, 48}));
  }
  Attributes half;
  half.set("alpha", 0.5f);
  expect_close(gemm(half, {kSquare, kSquare}), f32({2, 2}, {3.5f, 5, 7.5f, 11}));
  expect_close(gemm({}, {kSquare, kSquare, Tensor()}), f32({2, 2}, {7, 10, 15, 22}));
}

TEST(Gemm, OtherTypes) {
  const std::int32_t ints[] = {1, 2, 3, 4}, bias[] = {-10, 20};
  const Tensor i = Tensor::of<std::int32_t>({2, 2}, ints);
  EXPECT_EQ(gemm({}, {i, i, Tensor::of<std::int32_t>({2}, bias)}).to_ints(), (std::vector<std::int64_t>{-3, 30, 5, 42}));
  const double wide[] = {1, 2, 3, 4};
  const Tensor d = Tensor::of<double>({2, 2}, wide);
  EXPECT_EQ(gemm(both_transposed(), {d, d, d}).to_doubles(), (std::vector<double>{14.5, 31, 21.5, 46}));
}

TEST(Gemm, RefusesWhatDoesNotFit) {
  EXPECT_THROW(gemm({}, {kSquare, f32({3, 1}, {1, 2, 3})}), InvalidModel);
  EXPECT_THROW(gemm({}, {kSquare, f32({1, 2, 2}, {1, 2, 3, 4})}), InvalidModel);
  EXPECT_THROW(gemm({}, {kSquare, kSquare, f32({3}, {1, 2, 3})}), InvalidModel);
  EXPECT_THROW(gemm({}, {kSquare, i64({2, 2}, {1, 2, 3, 4})}), InvalidModel);
}

TEST(MatMul, RanksOfNumpy) {
  const Tensor v = f32({2}, {1, 10});
  expect_close(matmul(v, v), f32({}, {101}));
  expect_close(matmul(kSquare, v), f32({2}, {21, 43}));
  expect_close(matmul(v, kSquare), f32({2}, {31, 42}));
  const Tensor pair = f32({2, 2, 2}, {1, 0, 0, 1, 0, 1, 1, 0});
  expect_close(matmul(pair, kSquare), f32({2, 2, 2}, {1, 2, 3, 4, 3, 4, 1, 2}));
  expect_close(matmul(kSquare, pair), f32({2, 2, 2}, {1, 2, 3, 4, 2, 1, 4, 3}));
  expect_close(matmul(v, pair), f32({2, 2}, {1, 10, 10, 1}));
  EXPECT_EQ(matmul(f32({3, 1, 2, 2}, std::vector<float>(12, 1)), f32({2, 2, 1}, {1, 1, 1, 1})).shape(), (Shape{3, 2, 2, 1}));
  EXPECT_THROW(matmul(f32({}, {1}), v), InvalidModel);
  EXPECT_THROW(matmul(kSquare, f32({3}, {1, 2, 3})), InvalidModel);
  EXPECT_THROW(matmul(f32({2, 1, 1}, {1, 2}), f32({3, 1, 1}, {1, 2, 3})), InvalidModel);
}

TEST(MatMul, EmptyOperands) {
  EXPECT_EQ(matmul(Tensor(DType::kF32, {0, 3}), Tensor(DType::kF32, {3, 2})).shape(), (Shape{0, 2}));
  expect_close(matmul(Tensor(DType::kF32, {2, 0}), Tensor(DType::kF32, {0, 2})), f32({2, 2}, {0, 0, 0, 0}));
  EXPECT_EQ(matmul(Tensor(DType::kF32, {0, 2, 3}), Tensor(DType::kF32, {0, 3, 2})).shape(), (Shape{0, 2, 2}));
}

// Plain loops in double; sizes around the kernel's tiles and panels.
TEST(MatMul, EqualsPlainLoopsForOddSizes) {
  const std::int64_t sizes[][3] = {{1, 1, 1}, {1, 7, 1000}, {5, 33, 64}, {6, 128, 65}, {13, 300, 31}, {50, 9, 130}, {100, 64, 3}};
  for (const auto& [m, k, n] : sizes) {
    const Tensor a = random_f32({2, m, k}, 1), b = random_f32({2, k, n}, 2);
    const auto x = a.to_doubles(), y = b.to_doubles();
    Tensor want(DType::kF32, {2, m, n});
    for (std::int64_t i = 0; i < 2 * m * n; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < k; ++j)
        sum += x[static_cast<std::size_t>(i / n * k + j)] * y[static_cast<std::size_t>((i / (m * n) * k + j) * n + i % n)];
      want.as_mutable<float>()[static_cast<std::size_t>(i)] = static_cast<float>(sum);
    }
    expect_close(matmul(a, b), want, 1e-5, 1e-5);
    expect_close(matmul(a, b, {1}), want, 1e-5, 1e-5);
  }
}

TEST(Gemm, EqualsPlainLoopsForOddSizesAndTransposes) {
  const std::int64_t m = 61, k = 75, n = 83;
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      const Tensor a = random_f32(trans_a ? Shape{k, m} : Shape{m, k}, 5), b = random_f32(trans_b ? Shape{n, k} : Shape{k, n}, 6),
                   c = random_f32({n}, 7);
      const auto x = a.to_doubles(), y = b.to_doubles(), z = c.to_doubles();
      Tensor want(DType::kF32, {m, n});
      for (std::int64_t i = 0; i < m * n; ++i) {
        const std::int64_t row = i / n, column = i % n;
        double sum = z[static_cast<std::size_t>(column)];
        for (std::int64_t j = 0; j < k; ++j) {
          sum += x[static_cast<std::size_t>(trans_a ? j * m + row : row * k + j)] *
                 y[static_cast<std::size_t>(trans_b ? column * k + j : j * n + column)];
        }
        want.as_mutable<float>()[static_cast<std::size_t>(i)] = static_cast<float>(sum);
      }
      Attributes attributes;
      attributes.set("transA", std::int64_t{trans_a});
      attributes.set("transB", std::int64_t{trans_b});
      expect_close(gemm(attributes, {a, b, c}), want, 1e-5, 1e-5);
      expect_close(gemm(attributes, {a, b, c}, {1, 2}), want, 1e-5, 1e-5);
    }
  }
}

EvaluateOptions in_bfloat16(bool tiles, bool widen) {
  EvaluateOptions o{.precision = Precision::kBF16, .store_bf16 = true, .widen_outputs = widen};
  o.cpu.emulate_amx = tiles;
  return o;
}

// 1 + 2^-9 is 1 as bf16; 257 lies between two bf16 numbers, 256 is even.
TEST(MatMul, Bfloat16RoundsBothFactorsAndAddsInFloat32) {
  const Tensor row = f32({1, 2}, {1 + 0x1p-9f, 1}), column = f32({2, 1}, {1 + 0x1p-9f, 256}), bias = f32({1}, {0x1p-9f});
  for (const bool tiles : {false, true}) {
    for (const std::vector<std::size_t>& constant : {std::vector<std::size_t>{}, {0}, {1}}) {
      const NodeCase product{.op = "MatMul", .attributes = {}, .operands = {row, column}, .constant = constant};
      EXPECT_EQ(run_node(product, in_bfloat16(tiles, true))[0].as<float>()[0], 257);
      EXPECT_EQ(run_node(product, in_bfloat16(tiles, false))[0].as<float>()[0], 256);
    }
    // The bias stays float32.
    for (const float beta : {1.0f, 2.0f}) {
      Attributes a;
      a.set("beta", beta);
      const NodeCase gemm{.op = "Gemm", .attributes = a, .operands = {row, column, bias}, .constant = {1, 2}};
      EXPECT_EQ(run_node(gemm, in_bfloat16(tiles, true))[0].as<float>()[0], 257 + beta * 0x1p-9f);
      EXPECT_EQ(run_node(gemm, in_bfloat16(tiles, false))[0].as<float>()[0], 258);  // 257 and more is nearer to 258
    }
  }
}

TEST(MatMul, BitsDoNotDependOnTheNumberOfRows) {
  const Tensor a = random_f32({61, 200}, 3), b = random_f32({200, 70}, 4);
  EvaluateOptions three{.precision = Precision::kBF16x3};
  three.cpu.emulate_amx = true;
  for (const EvaluateOptions& options : {EvaluateOptions{}, in_bfloat16(false, true), in_bfloat16(true, true), three}) {
    const auto run = [&](const Tensor& rows) {
      return run_node({.op = "MatMul", .attributes = {}, .operands = {rows, b}, .constant = {1}}, options)[0];
    };
    const Tensor all = run(a);
    for (std::int64_t m = 0; m < 61; m += 7) {
      const Tensor y = run(Tensor::of<float>({1, 200}, a.as<float>().subspan(static_cast<std::size_t>(m) * 200, 200)));
      for (std::size_t n = 0; n < 70; ++n) ASSERT_EQ(y.as<float>()[n], all.as<float>()[static_cast<std::size_t>(m) * 70 + n]) << m;
    }
  }
}

}  // namespace
}  // namespace tandem::test
