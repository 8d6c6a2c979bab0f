#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/cpu/activation_rows.h"
#include "runtime/cpu/elementwise_hwy.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Case {
  const char* op;
  double (*f)(double);
  float at_minus_inf, at_plus_inf;
};

double phi(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

const Case kCases[] = {
    {"Relu", [](double x) { return std::max(x, 0.0); }, 0, kInf},
    {"LeakyRelu", [](double x) { return x < 0 ? 0.01 * x : x; }, -kInf, kInf},
    {"Elu", [](double x) { return x < 0 ? std::expm1(x) : x; }, -1, kInf},
    {"Selu", [](double x) { return 1.05070102214813232421875 * (x < 0 ? 1.67326319217681884765625 * std::expm1(x) : x); }, -1.7580993f, kInf},
    {"Celu", [](double x) { return x < 0 ? std::expm1(x) : x; }, -1, kInf},
    {"Gelu", [](double x) { return x * phi(x); }, 0, kInf},
    {"Mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, 0, kInf},
    {"Swish", [](double x) { return x / (1 + std::exp(-x)); }, 0, kInf},
    {"HardSigmoid", [](double x) { return std::max(0.0, std::min(1.0, 0.2f * x + 0.5)); }, 0, 1},
    {"HardSwish", [](double x) { return x * std::max(0.0, std::min(6.0, x + 3)) / 6; }, NAN, kInf},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, 0, 1},
    {"Tanh", [](double x) { return std::tanh(x); }, -1, 1},
    {"Softplus", [](double x) { return std::log1p(std::exp(x)); }, 0, kInf},
    {"Softsign", [](double x) { return x / (1 + std::abs(x)); }, NAN, NAN},
    {"Erf", [](double x) { return std::erf(x); }, -1, 1},
};

// Dense over [-scale, scale], and small values of both signs.
std::vector<float> arguments(float scale) {
  std::vector<float> x;
  for (int i = -4000; i <= 4000; ++i) x.push_back(scale * static_cast<float>(i) / 4000.0f);
  for (float v = 1; v > 1e-30f; v *= 0.61f) x.insert(x.end(), {v, -v});
  return x;
}

TEST(Activations, LimitsInDoublePrecision) {
  for (const char* op : {"Gelu", "Mish", "Swish"}) {
    expect_close(apply_op(op, {typed<double>({3}, {-kInf, kInf, NAN})}), typed<double>({3}, {0, kInf, NAN}), 0, 0);
  }
  Attributes tanh;
  tanh.set("approximate", std::string("tanh"));
  expect_close(apply_op("Gelu", {typed<double>({2}, {-kInf, kInf})}, tanh), typed<double>({2}, {0, kInf}), 0, 0);
}

// x * max(0, min(1, x / 6 + 1/2)): minus infinity times zero is no number, and nothing overflows before it must.
TEST(Activations, HardSwishFollowsItsFormulaAtTheEnds) {
  constexpr double kMost = std::numeric_limits<double>::max();
  expect_close(apply_op("HardSwish", {typed<double>({6}, {-kInf, kInf, NAN, kMost, -kMost, -3})}), typed<double>({6}, {NAN, kInf, NAN, kMost, 0, 0}),
               1e-15, 0);
  constexpr float kLarge = std::numeric_limits<float>::max();
  expect_close(apply_op("HardSwish", {f32({6}, {-kInf, kInf, NAN, kLarge, -kLarge, -3})}), f32({6}, {NAN, kInf, NAN, kLarge, 0, 0}), 1e-6, 0);
  float fused[6] = {-kInf, kInf, NAN, kLarge, -kLarge, -3};
  activate_rows({ActivationKind::kHardSwish}, fused, 1, 6, 6);
  expect_close(f32({6}, {fused, fused + 6}), f32({6}, {NAN, kInf, NAN, kLarge, 0, 0}), 1e-6, 0);
}

TEST(Activation, AgreesWithDoublePrecision) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.op);
    for (const float scale : {1.0f, 8.0f, 60.0f}) {
      const auto x = arguments(scale);
      const Shape shape{static_cast<std::int64_t>(x.size())};
      Tensor want(DType::kF32, shape), wide(DType::kF64, shape), want_wide(DType::kF64, shape);
      for (std::size_t i = 0; i < x.size(); ++i) {
        wide.as_mutable<double>()[i] = x[i];
        want_wide.as_mutable<double>()[i] = c.f(x[i]);
        want.as_mutable<float>()[i] = static_cast<float>(c.f(x[i]));
      }
      // Without FMA 0.2 x is rounded before 0.5 cancels it.
      const double atol = std::string_view(c.op) == "HardSigmoid" ? 0x1p-24 : 1e-8;
      expect_close(apply_op(c.op, {f32(shape, x)}), want, 1e-6, atol);
      expect_close(apply_op(c.op, {wide}), want_wide, 1e-7, 1e-10);  // default attributes are f32 numbers
    }
  }
}

TEST(Activation, EdgesOfTheRange) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.op);
    const Tensor y = apply_op(c.op, {f32({4}, {NAN, 1e-38f, 3e38f, -3e38f})});
    EXPECT_TRUE(std::isnan(y.as<float>()[0]));
    for (const std::size_t i : {1u, 2u, 3u}) EXPECT_FALSE(std::isnan(y.as<float>()[i])) << i;
    const Tensor limits = apply_op(c.op, {f32({2}, {-kInf, kInf})});
    const auto check = [](float got, float want) {
      if (std::isinf(want)) {
        EXPECT_EQ(got, want);
      } else if (!std::isnan(want)) {
        EXPECT_NEAR(got, want, 1e-6);
      }
    };
    check(limits.as<float>()[0], c.at_minus_inf);
    check(limits.as<float>()[1], c.at_plus_inf);
    expect_close(apply_op(c.op, {f32({0, 2}, {})}), f32({0, 2}, {}));
    EXPECT_EQ(apply_op(c.op, {f32({}, {1})}).shape(), Shape{});
  }
}

TEST(Activation, LayoutsAndStorageChangeNothing) {
  for (const Case& c : kCases) {
    Tensor x = random_f32({2, 7, 5, 3}, 9);
    for (float& v : x.as_mutable<float>()) v *= 6;
    expect_layouts_agree({.op = c.op, .attributes = {}, .operands = {x}});
    expect_bf16_storage_rounds_once({.op = c.op, .attributes = {}, .operands = {x}});
  }
}

// A batch of 2 begins its second image at another place of a vector than a batch of 1.
TEST(Activation, PlaceChangesNoBit) {
  for (int k = 0; k <= static_cast<int>(FloatMap::kClip); ++k) {
    const auto kind = static_cast<FloatMap>(k);
    const MapBody body = float_map(kind, 1.25f, 0.5f);
    Tensor x = random_f32({61}, 10), all(DType::kF32, {61});
    for (float& v : x.as_mutable<float>()) v *= 5;
    const void* in[] = {x.data()};
    body(in, all.mutable_data(), 61);
    for (std::int64_t begin = 0; begin < 61; begin += 5) {
      const std::int64_t n = std::min<std::int64_t>(61 - begin, 1 + begin % 13);
      Tensor part(DType::kF32, {n});
      const void* from[] = {x.as<float>().data() + begin};
      body(from, part.mutable_data(), n);
      EXPECT_EQ(std::memcmp(part.data(), all.as<float>().data() + begin, part.bytes()), 0) << k << " at " << begin;
    }
  }
}

TEST(Activation, AttributesAreObeyed) {
  const auto with = [](const char* name, float v) {
    Attributes a;
    a.set(name, v);
    return a;
  };
  const Tensor x = f32({3}, {-2, 0, 3});
  expect_close(apply_op("LeakyRelu", {x}, with("alpha", 0.1f)), f32({3}, {-0.2f, 0, 3}));
  expect_close(apply_op("Elu", {x}, with("alpha", 2.0f)), f32({3}, {-1.7293294f, 0, 3}));
  expect_close(apply_op("Celu", {x}, with("alpha", 2.0f)), f32({3}, {-1.2642411f, 0, 3}));
  expect_close(apply_op("Selu", {x}, with("gamma", 2.0f)), f32({3}, {-2.8936231f, 0, 6}));
  expect_close(apply_op("Swish", {x}, with("alpha", 2.0f)), f32({3}, {-0.03597242f, 0, 2.9925821f}));
  expect_close(apply_op("HardSigmoid", {x}, with("alpha", 0.1f)), f32({3}, {0.3f, 0.5f, 0.8f}));
  Attributes tanh;
  tanh.set("approximate", std::string("tanh"));
  expect_close(apply_op("Gelu", {f32({4}, {-1, 0, 1, 3})}, tanh), f32({4}, {-0.1588080f, 0, 0.8411920f, 2.9963627f}));
  tanh.set("approximate", std::string("sigmoid"));
  EXPECT_THROW(apply_op("Gelu", {x}, tanh), InvalidModel);
  EXPECT_THROW(apply_op("Celu", {x}, with("alpha", 0.0f)), InvalidModel);
  EXPECT_THROW(apply_op("Sigmoid", {i64({1}, {1})}), InvalidModel);
}

TEST(Activation, ReluOfIntegers) {
  expect_close(apply_op("Relu", {typed<std::int8_t>({3}, {-128, 0, 5})}), typed<std::int8_t>({3}, {0, 0, 5}));
  EXPECT_THROW(apply_op("Relu", {typed<std::uint8_t>({1}, {1})}), InvalidModel);
}

}  // namespace
}  // namespace tandem::test
