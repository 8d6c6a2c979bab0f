#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

Attributes axis(std::int64_t v) {
  Attributes a;
  a.set("axis", v);
  return a;
}

TEST(Softmax, NormalisesAlongOneAxisOnly) {
  expect_close(apply_op("Softmax", {f32({1, 2, 2}, {0, 0, 0, 0})}, axis(1)), f32({1, 2, 2}, {0.5, 0.5, 0.5, 0.5}));
  expect_close(apply_op("Softmax", {f32({1, 3}, {-1, 0, 1})}), f32({1, 3}, {0.09003058f, 0.24472848f, 0.66524094f}), 1e-6, 0);
  expect_close(apply_op("Softmax", {f32({2, 4}, {0, 1, 2, 3, 10000, 10001, 10002, 10003})}),
               f32({2, 4}, {0.0320586f, 0.08714432f, 0.23688284f, 0.6439143f, 0.0320586f, 0.08714432f, 0.23688284f, 0.6439143f}), 1e-6, 0);
  expect_close(apply_op("LogSoftmax", {f32({1, 3}, {-1, 0, 1})}), f32({1, 3}, {-2.4076061f, -1.407606f, -0.40760604f}), 1e-6, 0);
  expect_close(apply_op("Hardmax", {f32({2, 3}, {3, 3, 1, 0, 1, 2})}), f32({2, 3}, {1, 0, 0, 0, 0, 1}), 0, 0);
  EXPECT_THROW(apply_op("Softmax", {f32({1, 2}, {0, 0})}, axis(2)), InvalidModel);
  EXPECT_THROW(apply_op("Softmax", {i64({1}, {0})}), InvalidModel);
}

TEST(Softmax, AgreesWithDoublePrecisionOnEveryAxis) {
  Tensor x = random_f32({3, 5, 4, 7}, 1), wide(DType::kF64, x.shape());
  for (float& v : x.as_mutable<float>()) v *= 20;
  for (std::size_t i = 0; i < 420; ++i) wide.as_mutable<double>()[i] = x.as<float>()[i];
  const auto steps = row_major_strides(x.shape());
  for (std::int64_t a = -4; a < 4; ++a) {
    const auto d = static_cast<std::size_t>(a < 0 ? a + 4 : a);
    Tensor want(DType::kF32, x.shape()), logs(DType::kF32, x.shape());
    for (std::int64_t i = 0; i < 420; ++i) {
      const std::int64_t first = i - i / steps[d] % x.shape()[d] * steps[d];
      double sum = 0;
      for (std::int64_t k = 0; k < x.shape()[d]; ++k) sum += std::exp(wide.as<double>()[static_cast<std::size_t>(first + k * steps[d])]);
      const double v = wide.as<double>()[static_cast<std::size_t>(i)];
      want.as_mutable<float>()[static_cast<std::size_t>(i)] = static_cast<float>(std::exp(v) / sum);
      logs.as_mutable<float>()[static_cast<std::size_t>(i)] = static_cast<float>(v - std::log(sum));
    }
    expect_close(apply_op("Softmax", {x}, axis(a)), want, 1e-5, 1e-12);
    expect_close(apply_op("LogSoftmax", {x}, axis(a)), logs, 1e-6, 1e-5);
    for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) expect_layouts_agree({.op = op, .attributes = axis(a), .operands = {x}});
  }
}

TEST(Softmax, NanAndNothing) {
  expect_close(apply_op("Softmax", {f32({2}, {NAN, 1})}), f32({2}, {NAN, NAN}));
  expect_close(apply_op("Softmax", {f32({0, 3}, {})}), f32({0, 3}, {}));
  expect_close(apply_op("Softmax", {f32({3, 0}, {})}), f32({3, 0}, {}));
}

TEST(Softmax, AScalarHasNoAxis) {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) EXPECT_THROW(apply_op(op, {f32({}, {1})}), InvalidModel);
}

}  // namespace
}  // namespace tandem::test
