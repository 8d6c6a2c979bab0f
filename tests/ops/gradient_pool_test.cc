// Gradients of pools. Inputs of maxima are far apart (steps of 0.01 against 1e-6), so that no difference crosses a kink.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/support/conv_cases.h"
#include "tests/support/gradient_check.h"

namespace tandem::test {
namespace {

using Ints = std::vector<std::int64_t>;

struct PoolCase {
  Shape x;
  Ints kernel, strides = {}, pads = {}, dilations = {};
  bool ceil = false;
};

const std::vector<PoolCase>& cases() {
  static const std::vector<PoolCase> all = {
      {{2, 3, 9}, {3}, {2}, {1, 0}},
      {{2, 5, 7, 8}, {3, 3}, {2, 2}, {1, 1, 1, 1}},
      {{1, 4, 6, 7}, {2, 3}},
      {{2, 3, 8, 8}, {3, 3}, {2, 2}, {0, 0, 1, 1}},
      {{1, 2, 9, 7}, {3, 2}, {3, 2}, {1, 0, 0, 1}, {2, 3}},
      {{1, 3, 7, 8}, {3, 3}, {2, 3}, {}, {}, true},
      {{1, 2, 6, 6}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {}, true},
      {{1, 2, 7, 7}, {2, 2}, {3, 3}},  // cells that no window sees
      {{1, 3, 4, 5, 4}, {2, 3, 2}, {1, 2, 2}, {1, 1, 0, 0, 1, 0}},
      {{1, 9, 12, 11}, {9, 9}, {1, 1}, {4, 4, 4, 4}},  // more than 64 cells
  };
  return all;
}

Attributes attributes(const PoolCase& c) {
  Attributes a;
  a.set("kernel_shape", c.kernel);
  if (!c.strides.empty()) a.set("strides", c.strides);
  if (!c.pads.empty()) a.set("pads", c.pads);
  if (!c.dilations.empty()) a.set("dilations", c.dilations);
  if (c.ceil) a.set("ceil_mode", std::int64_t{1});
  return a;
}

// All values different, `apart` from each other and half of it from 0, in random order.
Tensor spread(const Shape& shape, std::uint64_t seed, float apart = 0.01f) {
  Tensor t(DType::kF32, shape);
  auto values = t.as_mutable<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = apart * (static_cast<float>(i) - static_cast<float>(values.size()) / 2 + 0.5f);
  std::mt19937_64 random(seed);
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
  return t;
}

TEST(PoolGradients, MaxPool) {
  for (const PoolCase& c : cases()) {
    SCOPED_TRACE(tandem::to_string(c.x));
    check_node_gradients({.op = "MaxPool", .attributes = attributes(c), .operands = {spread(c.x, 1)}});
  }
}

TEST(PoolGradients, AveragePool) {
  for (const PoolCase& c : cases()) {
    for (const std::int64_t count : {0, 1}) {
      SCOPED_TRACE(tandem::to_string(c.x) + std::to_string(count));
      Attributes a = attributes(c);
      a.set("count_include_pad", count);
      check_node_gradients({.op = "AveragePool", .attributes = a, .operands = {random_f32(c.x, 1)}});
    }
  }
}

TEST(PoolGradients, LpPool) {
  for (const PoolCase& c : cases()) {
    for (const std::int64_t p : {1, 2, 3}) {
      SCOPED_TRACE(tandem::to_string(c.x) + std::to_string(p));
      Attributes a = attributes(c);
      a.set("p", p);
      check_node_gradients({.op = "LpPool", .attributes = a, .operands = {spread(c.x, 1, 0.001f)}});
    }
  }
}

TEST(PoolGradients, AutomaticPadsAndGlobalForms) {
  Attributes same;
  same.set("kernel_shape", Ints{3, 3});
  same.set("strides", Ints{2, 2});
  same.set("auto_pad", std::string("SAME_UPPER"));
  for (const char* op : {"MaxPool", "AveragePool"}) {
    SCOPED_TRACE(op);
    check_node_gradients({.op = op, .attributes = same, .operands = {spread({2, 3, 8, 7}, 1)}});
  }
  for (const char* op : {"GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"}) {
    SCOPED_TRACE(op);
    check_node_gradients({.op = op, .attributes = {}, .operands = {spread({2, 70, 3, 2}, 1)}});
    check_node_gradients({.op = op, .attributes = {}, .operands = {spread({1, 3, 11, 10}, 1)}});
  }
}

Tensor gradient(const char* op, const Attributes& a, std::vector<Tensor> operands, const EvaluateOptions& o) {
  return run_node({.op = op, .attributes = a, .operands = std::move(operands)}, o)[0];
}

TEST(PoolGradients, FirstOfEqualMaximaWins) {
  const Tensor x = f32({1, 1, 3, 3}, {1, 2, 2, 2, 1, 0, 0, 2, 2}), dy = f32({1, 1, 2, 2}, {1, 10, 100, 1000});
  Attributes a;
  a.set("kernel_shape", Ints{2, 2});
  const Tensor want = f32({1, 1, 3, 3}, {0, 11, 0, 100, 0, 0, 0, 1000, 0});
  expect_close(gradient("MaxPoolGrad", a, {dy, x}, {}), want);
  expect_close(gradient("MaxPoolGrad", a, {dy, x}, {.layout = Layout::kChannelsLast}), want);
}

TEST(PoolGradients, NormsAreHomogeneous) {
  Attributes a;
  a.set("kernel_shape", Ints{2});
  a.set("strides", Ints{2});
  const Tensor x = f32({1, 1, 6}, {3, -4, 0, 0, 0, 2}), dy = f32({1, 1, 3}, {10, 7, 5});
  expect_close(gradient("LpPoolGrad", a, {dy, x}, {}), f32({1, 1, 6}, {6, -8, 0, 0, 0, 5}));
}

// Rows cut into several tasks, stored bf16, gaps behind the channels: the same numbers as the plain kernel's.
TEST(PoolGradients, LayoutsAndTypesAgree) {
  const PoolCase large[] = {{{2, 67, 50, 41}, {3, 3}, {2, 2}, {1, 1, 1, 1}}, {{1, 130, 33, 29}, {2, 2}, {2, 2}}, {{1, 75, 40, 30}, {3, 5}}};
  for (const PoolCase& c : large) {
    SCOPED_TRACE(tandem::to_string(c.x));
    const auto half = [](const Tensor& t) { return to_type(DType::kF32, to_type(DType::kBF16, t)); };
    const Tensor x = half(random_f32(c.x, 1));  // ties as well
    const Tensor y = run_node({.op = "MaxPool", .attributes = attributes(c), .operands = {x}})[0];
    const Tensor dy = half(random_f32(y.shape(), 2));
    Attributes average = attributes(c);
    average.set("input_shape", Ints(c.x.begin() + 2, c.x.end()));
    for (const bool maximum : {true, false}) {
      const char* op = maximum ? "MaxPoolGrad" : "AveragePoolGrad";
      const Attributes& a = maximum ? attributes(c) : average;
      const std::vector<Tensor> operands = maximum ? std::vector<Tensor>{dy, x} : std::vector<Tensor>{dy};
      std::vector<Tensor> wide;
      for (const Tensor& t : operands) wide.push_back(to_type(DType::kF64, t));
      const Tensor want = gradient(op, a, wide, {});
      for (const std::int64_t extra : {0, 5}) {
        expect_close(to_type(DType::kF64, gradient(op, a, operands, {.layout = Layout::kChannelsLast, .extra_pitch = extra})), want, 1e-5, 1e-5);
        expect_close(to_type(DType::kF64, gradient(op, a, operands, {.layout = Layout::kChannelsLast, .extra_pitch = extra, .store_bf16 = true})),
                     want, 1.0 / 256, 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace tandem::test
