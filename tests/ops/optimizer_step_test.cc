// SgdStep RmspropStep AdamStep AdagradStep GradientNorms AccumulateGradient MovingAverage: one step of arrays of many sizes against the formulas
// in double. Many steps against Keras and torch: tests/runtime/optimizer_test.cc.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "runtime/graph/optimizer.h"
#include "tests/support/graph_builder.h"
#include "tests/support/node_test.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

const Tensor kNorms = typed<double>({1, 2}, {4, 0});

Tensor scalars(float scale, float rate, float step_rate = 0, float root = 1, float average = 0) {
  return f32({kStepScalars}, {scale, rate, step_rate == 0 ? rate : step_rate, root, average});
}

// Values in [0, 1), as second moments are.
Tensor positive(const Shape& shape, std::uint64_t seed) {
  std::vector<float> v;
  for (const double x : random_f32(shape, seed).to_doubles()) v.push_back(static_cast<float>(x * x));
  return Tensor::of<float>(shape, std::span<const float>(v));
}

// f changes weight and slots of one element.
template <class F>
void expect_step(const NodeCase& c, F f) {
  const auto got = run_node(c);
  const auto w = c.operands[0].to_doubles(), g = c.operands[1].to_doubles();
  std::vector<std::vector<double>> state{w};
  for (std::size_t s = 4; s < c.operands.size(); ++s) state.push_back(c.operands[s].to_doubles());
  for (std::size_t i = 0; i < w.size(); ++i) {
    double one[4] = {};
    for (std::size_t s = 0; s < state.size(); ++s) one[s] = state[s][i];
    f(g[i], one[0], one[1], one[2], one[3]);
    for (std::size_t s = 0; s < state.size(); ++s) state[s][i] = one[s];
  }
  ASSERT_EQ(got.size(), state.size());
  for (std::size_t s = 0; s < state.size(); ++s) {
    const auto values = got[s].to_doubles();
    for (std::size_t i = 0; i < w.size(); ++i)
      ASSERT_NEAR(values[i], state[s][i], 2e-6 * std::max(1.0, std::abs(state[s][i]))) << c.op << s << "," << i;
  }
}

const Shape kShapes[] = {{}, {1}, {511}, {512}, {513}, {3, 5, 7, 11}, {200, 401}};

TEST(OptimizerStep, Sgd) {
  for (const Shape& s : kShapes) {
    const Tensor w = random_f32(s, 1), g = random_f32(s, 2), v = random_f32(s, 3);
    expect_step({.op = "SgdStep", .operands = {w, g, scalars(0.5f, 0.25f), kNorms}},
                [](double d, double& x, double&, double&, double&) { x -= 0.25 * 0.5 * d; });
    expect_step({.op = "SgdStep",
                 .attributes = attributes({{"momentum", 0.5f}, {"nesterov", std::int64_t{1}}}),
                 .operands = {w, g, scalars(1, 0.25f), kNorms, v},
                 .outputs = 2},
                [](double d, double& x, double& m, double&, double&) {
                  m = 0.5 * m - 0.25 * d;
                  x += 0.5 * m - 0.25 * d;
                });
    expect_step({.op = "SgdStep",
                 .attributes = attributes({{"momentum", 0.5f}, {"torch", std::int64_t{1}}, {"coupled_decay", 0.125f}}),
                 .operands = {w, g, scalars(1, 0.25f), kNorms, v},
                 .outputs = 2},
                [](double d, double& x, double& m, double&, double&) {
                  m = 0.5 * m + d + 0.125 * x;
                  x -= 0.25 * m;
                });
  }
}

TEST(OptimizerStep, Rmsprop) {
  for (const Shape& s : kShapes) {
    const Tensor w = random_f32(s, 1), g = random_f32(s, 2), v = positive(s, 3), b = random_f32(s, 4);
    for (const bool torch : {false, true}) {
      const Attributes a =
          attributes({{"momentum", 0.5f}, {"rho", 0.75f}, {"epsilon", 0.5f}, {"centered", std::int64_t{1}}, {"torch", std::int64_t{torch}}});
      const Tensor mean(DType::kF32, s);  // 0: the difference under the root stays above 0
      expect_step({.op = "RmspropStep", .attributes = a, .operands = {w, g, scalars(1, 0.25f), kNorms, v, b, mean}, .outputs = 4},
                  [torch](double d, double& x, double& q, double& m, double& e) {
                    q = 0.75 * q + 0.25 * d * d;
                    e = 0.75 * e + 0.25 * d;
                    const double root = torch ? std::sqrt(q - e * e) + 0.5 : std::sqrt(q - e * e + 0.5);
                    m = 0.5 * m + (torch ? 1 : 0.25) * d / root;
                    x -= (torch ? 0.25 : 1) * m;
                  });
    }
    expect_step({.op = "RmspropStep",
                 .attributes = attributes({{"rho", 0.75f}, {"epsilon", 0.5f}}),
                 .operands = {w, g, scalars(1, 0.25f), kNorms, v},
                 .outputs = 2},
                [](double d, double& x, double& q, double&, double&) {
                  q = 0.75 * q + 0.25 * d * d;
                  x -= 0.25 * d / std::sqrt(q + 0.5);
                });
  }
}

TEST(OptimizerStep, Adam) {
  const Attributes a = attributes({{"one_minus_beta1", 0.25f}, {"one_minus_beta2", 0.125f}, {"epsilon", 0.5f}, {"rate_factor", 0.5f}});
  for (const Shape& s : kShapes) {
    const Tensor w = random_f32(s, 1), g = random_f32(s, 2), m = random_f32(s, 3), v = positive(s, 4);
    expect_step({.op = "AdamStep", .attributes = a, .operands = {w, g, scalars(1, 0.25f, 0.125f, 0.5f), kNorms, m, v}, .outputs = 3},
                [](double d, double& x, double& first, double& second, double&) {
                  first = 0.75 * first + 0.25 * d;
                  second = 0.875 * second + 0.125 * d * d;
                  x -= 0.5 * 0.125 * first / (std::sqrt(second) / 0.5 + 0.5);
                });
  }
}

TEST(OptimizerStep, Adagrad) {
  for (const Shape& s : kShapes) {
    const Tensor w = random_f32(s, 1), g = random_f32(s, 2), sum = positive(s, 3);
    for (const bool torch : {false, true}) {
      const Attributes a = attributes({{"epsilon", 0.25f}, {"decay", 0.5f}, {"torch", std::int64_t{torch}}});
      expect_step({.op = "AdagradStep", .attributes = a, .operands = {w, g, scalars(1, 0.25f), kNorms, sum}, .outputs = 2},
                  [torch](double d, double& x, double& q, double&, double&) {
                    q += d * d;
                    x -= x * 0.5 * 0.25;
                    x -= 0.25 * d / (torch ? std::sqrt(q) + 0.25 : std::sqrt(q + 0.25));
                  });
    }
  }
}

TEST(OptimizerStep, Clips) {
  const Tensor w = f32({2}, {0, 0}), g = f32({2}, {1, -4});
  const auto step = [&](Attributes a, const Tensor& norms) {
    return run_node({.op = "SgdStep", .attributes = a, .operands = {w, g, scalars(1, 1), norms}})[0];
  };
  expect_close(step(attributes({{"clip_value", 2.0f}}), kNorms), f32({2}, {-1, 2}));
  expect_close(step(attributes({{"clip_norm", 1.0f}}), kNorms), f32({2}, {-0.5f, 2}));  // the norm is 2
  expect_close(step(attributes({{"clip_norm", 2.0f}}), kNorms), f32({2}, {-1, 4}));
  expect_close(step(attributes({{"clip_norm", 1.0f}}), typed<double>({1, 2}, {NAN, 0})), f32({2}, {NAN, NAN}));
}

TEST(OptimizerStep, NormsInDouble) {
  for (const Shape& s : kShapes) {
    const Tensor w = random_f32(s, 1), g = random_f32(s, 2);
    double plain = 0, squares = 0, penalty = 0;
    const auto x = w.to_doubles(), d = g.to_doubles();
    for (std::size_t i = 0; i < x.size(); ++i) {
      plain += 0.25 * d[i] * d[i];
      squares += std::pow(0.5 * d[i] + 0.25 * x[i], 2);
      penalty += 0.125 * x[i] * x[i];
    }
    const auto without = run_node({.op = "GradientNorms", .operands = {w, g, scalars(0.5f, 0)}})[0].to_doubles();
    EXPECT_NEAR(without[0], plain, 1e-12 * std::max(1.0, plain));
    EXPECT_EQ(without[1], 0);
    const auto with =
        run_node({.op = "GradientNorms", .attributes = attributes({{"l2", 0.125f}}), .operands = {w, g, scalars(0.5f, 0)}})[0].to_doubles();
    EXPECT_NEAR(with[0], squares, 1e-7 * std::max(1.0, squares));  // g is rounded to float32
    EXPECT_NEAR(with[1], penalty, 1e-12 * std::max(1.0, penalty));
  }
}

TEST(OptimizerStep, RunningSums) {
  const Tensor a = f32({3}, {1, 2, 3}), b = f32({3}, {8, 4, -8});
  expect_close(apply_op("AccumulateGradient", {a, b, scalars(0.25f, 0)}), f32({3}, {3, 3, 1}), 0, 0);
  expect_close(apply_op("MovingAverage", {a, b, scalars(1, 0, 0, 1, 0.75f)}), f32({3}, {2.75f, 2.5f, 0.25f}), 0, 0);
  expect_close(apply_op("MovingAverage", {a, b, scalars(1, 0, 0, 1, 0)}), b, 0, 0);
}

TEST(OptimizerStep, Refuses) {
  const Tensor w = f32({2}, {0, 0}), other = f32({3}, {0, 0, 0});
  EXPECT_THROW(apply_op("SgdStep", {w, other, scalars(1, 1), kNorms}), InvalidModel);
  EXPECT_THROW(apply_op("SgdStep", {w, w, w, kNorms}), InvalidModel);
  EXPECT_THROW(apply_op("SgdStep", {w, w, scalars(1, 1), w}), InvalidModel);
  EXPECT_THROW(apply_op("SgdStep", {w, w, scalars(1, 1), kNorms, w}), InvalidModel);  // a slot without momentum
  EXPECT_THROW(run_node({.op = "AdamStep", .operands = {w, w, scalars(1, 1), kNorms, w, other}, .outputs = 3}), InvalidModel);
}

}  // namespace
}  // namespace tandem::test
