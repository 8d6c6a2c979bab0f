#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/error.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

using Ints = std::vector<std::int64_t>;

Attributes window(Ints kernel, Ints strides = {}, Ints pads = {}, Ints dilations = {}, bool ceil = false) {
  Attributes a;
  a.set("kernel_shape", kernel);
  if (!strides.empty()) a.set("strides", strides);
  if (!pads.empty()) a.set("pads", pads);
  if (!dilations.empty()) a.set("dilations", dilations);
  if (ceil) a.set("ceil_mode", std::int64_t{1});
  return a;
}

Tensor pool(const char* op, const Attributes& a, const Tensor& x, const EvaluateOptions& options = {}) {
  return run_node({.op = op, .attributes = a, .operands = {x}}, options)[0];
}

EvaluateOptions last(std::int64_t extra = 0, bool bf16 = false) {
  EvaluateOptions o;
  o.layout = Layout::kChannelsLast;
  o.extra_pitch = extra;
  o.store_bf16 = bf16;
  return o;
}

Tensor counting(Shape shape) {
  Tensor t(DType::kF32, shape);
  float v = 0;
  for (float& x : t.as_mutable<float>()) x = ++v;
  return t;
}

// Both layouts and a gap after the channels.
void expect_pool(const char* op, const Attributes& a, const Tensor& x, const Tensor& want) {
  expect_close(pool(op, a, x), want);
  expect_close(pool(op, a, x, last()), want);
  expect_close(pool(op, a, x, last(3)), want);
}

TEST(Pool, AveragesOverTrailingPads) {
  const Tensor ones = f32({1, 1, 2, 2}, {1, 1, 1, 1});
  Attributes a = window({2, 2}, {}, {0, 0, 1, 1});
  expect_pool("AveragePool", a, ones, ones);
  a.set("count_include_pad", std::int64_t{1});
  expect_pool("AveragePool", a, ones, f32({1, 1, 2, 2}, {1, .5f, .5f, .25f}));
}

TEST(Pool, CeilWindowsDivideByTheCellsThatExist) {
  Attributes a = window({3, 3}, {2, 2}, {}, {}, true);
  const Tensor x = counting({1, 1, 4, 4}), want = f32({1, 1, 2, 2}, {6, 7.5f, 12, 13.5f});
  expect_pool("AveragePool", a, x, want);
  a.set("count_include_pad", std::int64_t{1});
  expect_pool("AveragePool", a, x, want);
}

TEST(Pool, CeilDoesNotAddAWindowWhereTheDivisionIsExact) {
  const Tensor x = f32({1, 1, 3}, {1, 2, 3});
  expect_pool("MaxPool", window({2}, {2}, {0, 1}, {}, true), x, f32({1, 1, 2}, {2, 3}));
  expect_pool("AveragePool", window({2}, {2}, {0, 1}, {}, true), x, f32({1, 1, 2}, {1.5f, 3}));
}

TEST(Pool, MaximumIgnoresPadding) {
  expect_pool("MaxPool", window({3}, {}, {1, 1}), f32({1, 1, 5}, {-1, -2, -3, -4, -5}), f32({1, 1, 5}, {-1, -1, -2, -3, -4}));
}

TEST(Pool, DilationReadsTheRightCells) {
  expect_pool("MaxPool", window({2, 2}, {}, {}, {2, 2}), counting({1, 1, 4, 4}), f32({1, 1, 2, 2}, {11, 12, 15, 16}));
}

TEST(Pool, SamePadding) {
  Attributes a = window({3}, {2});
  a.set("auto_pad", std::string("SAME_UPPER"));
  const Tensor x = f32({1, 1, 4}, {1, 2, 3, 4});
  expect_pool("MaxPool", a, x, f32({1, 1, 2}, {3, 4}));
  expect_pool("AveragePool", a, x, f32({1, 1, 2}, {2, 3.5f}));
  a.set("auto_pad", std::string("SAME_LOWER"));
  expect_pool("MaxPool", a, x, f32({1, 1, 2}, {2, 4}));
}

TEST(Pool, IndicesCountOverTheWholeTensorInBothOrders) {
  const Tensor x = f32({2, 1, 2, 3}, {1, 5, 5, 4, 0, 2, 9, 8, 7, 6, 5, 4});
  Attributes a = window({2, 2});
  for (const EvaluateOptions& options : {EvaluateOptions{}, last(), last(2)}) {
    auto y = run_node({.op = "MaxPool", .attributes = a, .operands = {x}, .outputs = 2}, options);
    expect_close(y[0], f32({2, 1, 1, 2}, {5, 5, 9, 8}));
    expect_close(y[1], i64({2, 1, 1, 2}, {1, 1, 6, 7}));
    Attributes columns = a;
    columns.set("storage_order", std::int64_t{1});
    y = run_node({.op = "MaxPool", .attributes = columns, .operands = {x}, .outputs = 2}, options);
    expect_close(y[1], i64({2, 1, 1, 2}, {2, 2, 6, 8}));  // h + 2 w
  }
}

TEST(Pool, OtherTypesKeepTheirType) {
  const std::int8_t small[] = {-5, -7, 100, -128};
  const Tensor y = pool("MaxPool", window({2}, {2}, {2, 0}), Tensor::of<std::int8_t>({1, 1, 4}, small));
  ASSERT_EQ(y.dtype(), DType::kI8);
  EXPECT_EQ(y.to_ints(), (Ints{-128, -5, 100}));  // a window of padding alone holds the least value
  const double wide[] = {1.0 / 3, 1, 2, 1e-300};
  EXPECT_EQ(pool("MaxPool", window({2}), Tensor::of<double>({1, 2, 2}, wide)).to_doubles(), (std::vector<double>{1, 2}));
}

TEST(Pool, NaNIsNotHidden) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect_pool("MaxPool", window({2}), f32({1, 1, 4}, {nan, 1, 2, nan}), f32({1, 1, 3}, {nan, 2, nan}));
}

TEST(Pool, LpAndGlobalForms) {
  Attributes a = window({2});
  expect_pool("LpPool", a, f32({1, 1, 3}, {3, -4, 0}), f32({1, 1, 2}, {5, 4}));
  a.set("p", std::int64_t{1});
  expect_pool("LpPool", a, f32({1, 1, 3}, {3, -4, 0}), f32({1, 1, 2}, {7, 4}));
  a.set("p", std::int64_t{3});
  expect_pool("LpPool", a, f32({1, 1, 2}, {1, -2}), f32({1, 1, 1}, {2.0800838f}));
  const Tensor x = f32({1, 2, 2, 2}, {1, 2, 3, 4, -1, -2, -2, -4});
  expect_pool("GlobalAveragePool", {}, x, f32({1, 2, 1, 1}, {2.5f, -2.25f}));
  expect_pool("GlobalMaxPool", {}, x, f32({1, 2, 1, 1}, {4, -1}));
  expect_pool("GlobalLpPool", {}, x, f32({1, 2, 1, 1}, {std::sqrt(30.0f), 5}));
}

TEST(Pool, AnEmptyBatchGivesAnEmptyResult) {
  EXPECT_EQ(pool("MaxPool", window({2, 2}), Tensor(DType::kF32, {0, 3, 4, 4}), last()).shape(), (Shape{0, 3, 3, 3}));
}

TEST(Pool, RefusesWhatMakesNoSense) {
  EXPECT_THROW(pool("MaxPool", window({2, 2}), f32({1, 1, 3}, {1, 2, 3})), InvalidModel);
  EXPECT_THROW(pool("MaxPool", window({4}), f32({1, 1, 3}, {1, 2, 3})), InvalidModel);
  EXPECT_THROW(pool("MaxPool", {}, f32({1, 1, 3}, {1, 2, 3})), InvalidModel);
  EXPECT_THROW(pool("GlobalAveragePool", {}, f32({2, 2}, {1, 2, 3, 4})), InvalidModel);
  EXPECT_THROW(pool("GlobalAveragePool", {}, Tensor(DType::kF32, {1, 2, 0, 3})), InvalidModel);
  EXPECT_THROW(pool("AveragePool", window({2}), i64({1, 1, 3}, {1, 2, 3})), InvalidModel);
  Attributes a = window({2});
  a.set("p", std::int64_t{0});
  EXPECT_THROW(pool("LpPool", a, f32({1, 1, 3}, {1, 2, 3})), InvalidModel);
}

// ---- against plain loops in double: every output cell asks every kernel cell whether it exists

struct Problem {
  Shape x;
  Ints kernel, strides, pads, dilations;
  bool ceil, count_pads;
};

std::vector<double> reference(const char* op, const Problem& p, const Tensor& x, const Shape& out) {
  const std::size_t r = p.kernel.size();
  const auto in = x.to_doubles();
  const auto strides = row_major_strides(p.x);
  std::vector<double> y;
  Ints at(out.size(), 0);
  for (std::int64_t o = 0; o < elements(out); ++o) {
    double sum = 0, most = -INFINITY;
    std::int64_t inside = 0, padded = 0;
    for (std::int64_t k = 0; k < elements(p.kernel); ++k) {
      std::int64_t rest = k, offset = at[0] * strides[0] + at[1] * strides[1];
      bool is_inside = true, is_padded = true;
      for (std::size_t d = r; d-- > 0;) {
        const std::int64_t i = at[2 + d] * p.strides[d] - p.pads[d] + rest % p.kernel[d] * p.dilations[d];
        rest /= p.kernel[d];
        is_inside &= i >= 0 && i < p.x[2 + d];
        is_padded &= i < p.x[2 + d] + p.pads[r + d];
        offset += i * strides[2 + d];
      }
      padded += is_padded;
      if (!is_inside) continue;
      ++inside;
      sum += in[static_cast<std::size_t>(offset)];
      most = std::max(most, in[static_cast<std::size_t>(offset)]);
    }
    y.push_back(op[0] == 'M' ? most : sum / static_cast<double>(p.count_pads ? padded : inside));
    for (std::size_t d = out.size(); d-- > 0 && ++at[d] == out[d];) at[d] = 0;
  }
  return y;
}

void compare(const char* op, const Problem& p) {
  Attributes a = window(p.kernel, p.strides, p.pads, p.dilations, p.ceil);
  a.set("count_include_pad", std::int64_t{p.count_pads});
  if (op[0] == 'M') a.erase("count_include_pad");
  const Tensor x = random_f32(p.x, 7);
  for (const EvaluateOptions& options : {EvaluateOptions{}, last(), last(5)}) {
    const Tensor y = pool(op, a, x, options);
    const auto want = reference(op, p, x, y.shape());
    const auto got = y.to_doubles();
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-6) << op << " of " << to_string(p.x) << ", element " << i;
  }
  const Tensor rounded = pool(op, a, x, last(0, true));
  const auto want = reference(op, p, x, rounded.shape());
  const auto got = rounded.to_doubles();
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 0.01) << op << " in bf16 of " << to_string(p.x) << ", element " << i;
}

TEST(Pool, EqualsPlainLoops) {
  const Problem problems[] = {
      {{2, 728, 5, 7}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, false, false},
      {{1, 67, 9, 8}, {3, 2}, {2, 3}, {0, 1, 2, 0}, {1, 2}, true, true},
      {{3, 1, 40}, {5}, {3}, {2, 1}, {2}, true, false},
      {{1, 5, 4, 5, 6}, {2, 3, 2}, {1, 2, 2}, {0, 1, 1, 1, 0, 0}, {2, 1, 1}, false, true},
      {{2, 33, 3, 4, 3, 4}, {2, 2, 2, 2}, {1, 2, 1, 1}, {0, 1, 0, 1, 1, 0, 1, 0}, {1, 1, 2, 1}, false, false},
      {{1, 300, 20, 20}, {20, 20}, {1, 1}, {0, 0, 0, 0}, {1, 1}, false, false},
  };
  for (const Problem& p : problems) {
    compare("MaxPool", p);
    compare("AveragePool", p);
  }
}

}  // namespace
}  // namespace tandem::test
