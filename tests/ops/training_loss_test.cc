// LossSum LossGrad
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "tests/support/gradient_check.h"
#include "tests/support/graph_builder.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

const char* const kKinds[] = {"categorical", "binary", "categorical_probabilities", "binary_probabilities", "mse", "mae"};

Attributes kind(const std::string& name) { return attributes({{"kind", name}}); }

std::vector<Tensor> loss_sum(const std::string& name, const Tensor& x, const Tensor& t, const Tensor& w) {
  return run_node({.op = "LossSum", .attributes = kind(name), .operands = {x, t, w}, .outputs = 2});
}
Tensor loss_grad(const std::string& name, const Tensor& x, const Tensor& t, const Tensor& w) { return apply_op("LossGrad", {x, t, w}, kind(name)); }

Tensor mapped(const Tensor& t, double (*f)(double)) {
  std::vector<float> out;
  for (const double v : t.to_doubles()) out.push_back(static_cast<float>(f(v)));
  return Tensor::of<float>(t.shape(), std::span<const float>(out));
}

// Operands on which no kind has a kink: probabilities away from the cut, predictions away from targets.
std::vector<Tensor> operands(const std::string& name, Shape shape, std::uint64_t seed) {
  Tensor x = random_f32(shape, seed), t = mapped(random_f32(shape, seed + 1), [](double v) { return 0.5 + v / 2; });
  const Tensor w = mapped(random_f32({shape[0]}, seed + 2), [](double v) { return 1.5 + v; });
  if (name.ends_with("probabilities")) x = mapped(x, [](double v) { return 0.5 + 0.45 * v; });
  if (name == "categorical" || name == "binary") x = mapped(x, [](double v) { return 5 * v; });
  if (name == "mae") t = mapped(t, [](double v) { return v < 0.5 ? v - 2 : v + 2; });
  return {x, t, w};
}

// The definitions, in double, a sample's numbers as [classes][positions].
double reference(const std::string& name, const std::vector<double>& x, const std::vector<double>& t, std::size_t classes) {
  const std::size_t n = x.size(), positions = n / classes;
  double sum = 0;
  if (name.starts_with("categorical")) {
    for (std::size_t p = 0; p < positions; ++p) {
      double norm = 0;
      const auto share = [&](std::size_t c) { return name == "categorical" ? std::exp(x[c * positions + p]) : x[c * positions + p]; };
      for (std::size_t c = 0; c < classes; ++c) norm += share(c);
      for (std::size_t c = 0; c < classes; ++c) sum -= t[c * positions + p] * std::log(share(c) / norm);
    }
    return sum / static_cast<double>(positions);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const double p = name == "binary" ? 1 / (1 + std::exp(-x[i])) : x[i];
    if (name.starts_with("binary"))
      sum -= t[i] * std::log(p) + (1 - t[i]) * std::log(1 - p);
    else
      sum += name == "mse" ? std::pow(x[i] - t[i], 2) : std::abs(x[i] - t[i]);
  }
  return sum / static_cast<double>(n);
}

TEST(LossSum, MeanOverOutputsAndWeightedSumOverSamples) {
  for (const std::string name : kKinds) {
    for (const Shape& shape : {Shape{1, 2}, Shape{7, 5}, Shape{3, 4, 3, 2}, Shape{37, 1000}}) {
      const auto in = operands(name, shape, 3);
      const auto got = loss_sum(name, in[0], in[1], in[2]);
      const auto x = in[0].to_doubles(), t = in[1].to_doubles(), w = in[2].to_doubles();
      const std::size_t each = x.size() / w.size();
      double sum = 0;
      for (std::size_t s = 0; s < w.size(); ++s) {
        const auto part = [&](const std::vector<double>& v) {
          return std::vector<double>(v.begin() + static_cast<long>(s * each), v.begin() + static_cast<long>((s + 1) * each));
        };
        const double loss = reference(name, part(x), part(t), static_cast<std::size_t>(shape[1]));
        sum += w[s] * loss;
        ASSERT_NEAR(got[1].to_doubles()[s], loss, 1e-6 * std::abs(loss)) << name << to_string(shape) << s;
      }
      ASSERT_EQ(got[0].dtype(), DType::kF64);
      EXPECT_NEAR(got[0].to_doubles()[0], sum, 1e-11 * std::abs(sum)) << name << to_string(shape);
    }
  }
}

TEST(LossSum, LargeLogits) {
  const Tensor x = f32({4, 2}, {1e4f, -1e4f, -1e4f, 1e4f, 3e38f, 0, 100, 100}), w = f32({4}, {1, 1, 1, 1});
  const Tensor t = f32({4, 2}, {1, 0, 1, 0, 1, 0, 0.5f, 0.5f});
  expect_close(loss_sum("categorical", x, t, w)[1], f32({4}, {0, 2e4f, 0, std::log(2.0f)}));
  expect_close(loss_grad("categorical", x, t, w), f32({4, 2}, {0, 0, -1, 1, 0, 0, 0, 0}));
  expect_close(loss_sum("binary", x, t, w)[1], f32({4}, {0, 1e4f, std::log(2.0f) / 2, 50}));
  expect_close(loss_grad("binary", x, t, w), f32({4, 2}, {0, 0, -0.5f, 0.5f, 0, 0.25f, 0.25f, 0.25f}));
  // What is no number stays none, as a target or not.
  expect_close(loss_sum("categorical", f32({2, 2}, {NAN, 0, 0, NAN}), f32({2, 2}, {1, 0, 1, 0}), f32({2}, {1, 1}))[1], f32({2}, {NAN, NAN}));
}

TEST(LossSum, ASampleWithoutWeightCountsNowhere) {
  for (const std::string name : kKinds) {
    const Tensor x = f32({2, 2}, {0.25f, 0.75f, NAN, NAN}), t = f32({2, 2}, {1, 0, 0, 1}), w = f32({2}, {1, 0});
    const Tensor one = f32({1, 2}, {0.25f, 0.75f}), target = f32({1, 2}, {1, 0}), full = f32({1}, {1});
    EXPECT_EQ(loss_sum(name, x, t, w)[0].to_doubles(), loss_sum(name, one, target, full)[0].to_doubles()) << name;
    const auto all = loss_grad(name, x, t, w).to_doubles(), first = loss_grad(name, one, target, full).to_doubles();
    EXPECT_EQ(all, (std::vector<double>{first[0], first[1], 0, 0})) << name;
  }
}

// Keras 3: probabilities are divided by their sum and cut at 1e-7, where no gradient passes.
TEST(LossSum, ProbabilitiesAreCut) {
  const Tensor x = f32({2, 2}, {0, 1, 1, 1}), t = f32({2, 2}, {1, 0, 0, 1}), w = f32({2}, {1, 1});
  const auto most = static_cast<double>(static_cast<float>(1 - 1e-7)), least = static_cast<double>(1e-7f);
  expect_close(loss_sum("categorical_probabilities", x, t, w)[1], f32({2}, {static_cast<float>(-std::log(least)), std::log(2.0f)}));
  expect_close(loss_grad("categorical_probabilities", x, t, w), f32({2, 2}, {0, 0, 0.5f, -0.5f}));
  const double sure = -std::log(most), wrong = -std::log(1 - most);
  expect_close(loss_sum("binary_probabilities", x, t, w)[1],
               f32({2}, {static_cast<float>((-std::log(least) + wrong) / 2), static_cast<float>((wrong + sure) / 2)}));
  expect_close(loss_grad("binary_probabilities", x, t, w), f32({2, 2}, {0, 0, 0, 0}));
}

TEST(LossSum, LogitsAndProbabilitiesAgree) {
  const auto in = operands("categorical", {5, 7}, 11);
  Tensor targets = in[1];
  const Tensor soft = apply_op("Softmax", {in[0]}), sigmoid = apply_op("Sigmoid", {in[0]});
  EXPECT_NEAR(loss_sum("categorical", in[0], targets, in[2])[0].to_doubles()[0],
              loss_sum("categorical_probabilities", soft, targets, in[2])[0].to_doubles()[0], 1e-5);
  EXPECT_NEAR(loss_sum("binary", in[0], targets, in[2])[0].to_doubles()[0],
              loss_sum("binary_probabilities", sigmoid, targets, in[2])[0].to_doubles()[0], 1e-5);
}

// Central differences of the sum, in double.
TEST(LossGrad, CentralDifferences) {
  for (const std::string name : kKinds) {
    for (const Shape& shape : {Shape{1, 2}, Shape{4, 5}, Shape{2, 3, 2, 3}}) {
      const auto in = operands(name, shape, 23);
      const Tensor f = loss_grad(name, in[0], in[1], in[2]);
      const Tensor x = in_double(in[0]), t = in_double(in[1]), w = in_double(in[2]);
      const auto narrow = f.to_doubles(), wide = loss_grad(name, x, t, w).to_doubles(), values = x.to_doubles();
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto moved = [&](double by) {
          auto v = values;
          v[i] += by;
          return loss_sum(name, Tensor::of<double>(shape, std::span<const double>(v)), t, w)[0].to_doubles()[0];
        };
        const double want = (moved(1e-6) - moved(-1e-6)) / 2e-6;
        EXPECT_NEAR(wide[i], want, 1e-7 * std::max(1.0, std::abs(want))) << name << to_string(shape) << i;
        EXPECT_NEAR(narrow[i], want, 2e-6 * std::max(1.0, std::abs(want))) << name << to_string(shape) << i;
      }
    }
  }
}

TEST(LossGrad, AbsoluteErrorIsFlatWhereItVanishes) {
  const Tensor x = f32({1, 4}, {1, 2, 3, NAN}), t = f32({1, 4}, {1, 3, 2, 0});
  expect_close(loss_grad("mae", x, t, f32({1}, {4})), f32({1, 4}, {0, -1, 1, NAN}));
}

TEST(LossSum, OneNumberPerSample) {
  expect_close(loss_sum("mse", f32({3}, {1, 2, 3}), f32({3}, {1, 0, 0}), f32({3}, {1, 1, 2}))[0], typed<double>({1}, {22}), 0, 0);
}

TEST(LossSum, Refuses) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4}), w = f32({2}, {1, 1});
  EXPECT_THROW(loss_sum("hinge", x, x, w), InvalidModel);
  EXPECT_THROW(loss_sum("mse", x, f32({4}, {1, 2, 3, 4}), w), InvalidModel);
  EXPECT_THROW(loss_sum("mse", x, x, f32({1}, {1})), InvalidModel);
  EXPECT_THROW(loss_sum("mse", x, i64({2, 2}, {1, 2, 3, 4}), w), InvalidModel);
  EXPECT_THROW(loss_sum("categorical", w, w, w), InvalidModel);
}

}  // namespace
}  // namespace tandem::test
