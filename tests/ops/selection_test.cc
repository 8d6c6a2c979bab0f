// TopK, OneHot, Trilu, Dropout.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

const EvaluateOptions kPitched{.layout = Layout::kChannelsLast, .extra_pitch = 5, .precision = Precision::kF32, .store_bf16 = false, .cpu = {}};

std::vector<Tensor> top_k(const Tensor& x, std::int64_t k, std::int64_t axis = -1, bool largest = true) {
  Attributes a;
  a.set("axis", axis);
  a.set("largest", std::int64_t{largest});
  return run_node({.op = "TopK", .attributes = a, .operands = {x, i64({1}, {k})}, .outputs = 2, .constant = {1}});
}

TEST(TopK, OrderTiesAndNaN) {
  const Tensor x = f32({2, 4}, {1, 3, 3, 2, -0.0f, 0, -5, NAN});
  auto y = top_k(x, 3);
  expect_close(y[0], f32({2, 3}, {3, 3, 2, NAN, 0, 0}));
  expect_close(y[1], i64({2, 3}, {1, 2, 3, 3, 0, 1}));
  y = top_k(x, 2, 1, false);
  expect_close(y[0], f32({2, 2}, {1, 2, -5, 0}));
  expect_close(y[1], i64({2, 2}, {0, 3, 2, 0}));
  y = top_k(x, 1, 0);
  expect_close(y[0], f32({1, 4}, {1, 3, 3, NAN}));
  expect_close(y[1], i64({1, 4}, {0, 0, 0, 1}));
  EXPECT_EQ(top_k(x, 0)[0].shape(), (Shape{2, 0}));
  expect_close(top_k(i64({3}, {INT64_MIN, INT64_MAX, 0}), 3)[1], i64({3}, {1, 2, 0}));
  EXPECT_THROW(top_k(x, 5), InvalidModel);
  EXPECT_THROW(top_k(x, -1), InvalidModel);
  EXPECT_THROW(top_k(x, 1, 2), InvalidModel);
}

TEST(OneHot, AxesNegativeAndOutOfRangeIndices) {
  const auto one_hot = [](const Tensor& indices, std::int64_t depth, std::int64_t axis) {
    Attributes a;
    a.set("axis", axis);
    return run_node({.op = "OneHot", .attributes = a, .operands = {indices, i64({}, {depth}), f32({2}, {0, 5})}, .outputs = 1, .constant = {1}})[0];
  };
  expect_close(one_hot(i64({3}, {0, -1, 7}), 3, -1), f32({3, 3}, {5, 0, 0, 0, 0, 5, 0, 0, 0}));
  expect_close(one_hot(i64({2}, {0, 2}), 3, 0), f32({3, 2}, {5, 0, 0, 0, 0, 5}));
  expect_close(one_hot(f32({1}, {1}), 2, 1), f32({1, 2}, {0, 5}));
  expect_close(one_hot(f32({1}, {INFINITY}), 2, 1), f32({1, 2}, {0, 0}));
  expect_close(one_hot(i64({}, {1}), 2, 0), f32({2}, {0, 5}));
  EXPECT_THROW(one_hot(i64({1}, {0}), 0, 0), InvalidModel);
  EXPECT_THROW(one_hot(i64({1}, {0}), 2, 2), InvalidModel);
}

TEST(Trilu, TrianglesWithOffsets) {
  const auto trilu = [](const Tensor& x, bool upper, std::vector<std::int64_t> k) {
    Attributes a;
    a.set("upper", std::int64_t{upper});
    NodeCase c{.op = "Trilu", .attributes = a, .operands = {x}, .outputs = 1, .constant = {1}};
    if (!k.empty()) c.operands.push_back(i64({}, k));
    return run_node(c)[0];
  };
  const Tensor x = f32({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  expect_close(trilu(x, true, {}), f32({1, 2, 3}, {1, 2, 3, 0, 5, 6}));
  expect_close(trilu(x, false, {}), f32({1, 2, 3}, {1, 0, 0, 4, 5, 0}));
  expect_close(trilu(x, true, {1}), f32({1, 2, 3}, {0, 2, 3, 0, 0, 6}));
  expect_close(trilu(x, false, {-1}), f32({1, 2, 3}, {0, 0, 0, 4, 0, 0}));
  expect_close(trilu(x, true, {INT64_MIN}), x);
  expect_close(trilu(x, true, {INT64_MAX}), f32({1, 2, 3}, {0, 0, 0, 0, 0, 0}));
  expect_close(trilu(x, false, {INT64_MAX}), x);
  expect_close(trilu(i64({2, 0}, {}), false, {0}), i64({2, 0}, {}));
  EXPECT_THROW(trilu(f32({2}, {1, 2}), true, {}), InvalidModel);
}

TEST(Dropout, IdentityInInference) {
  const Tensor x = random_f32({2, 3, 4, 5}, 1);
  for (const EvaluateOptions& o : {EvaluateOptions{}, kPitched}) {
    const auto y = run_node({.op = "Dropout", .attributes = {}, .operands = {x, f32({}, {0.9f})}, .outputs = 2, .constant = {1}}, o);
    expect_close(y[0], x, 0, 0);
    EXPECT_EQ(y[1].to_ints(), std::vector<std::int64_t>(120, 1));
  }
  const auto training = [&](float ratio) {
    return run_node(
        {.op = "Dropout", .attributes = {}, .operands = {x, f32({}, {ratio}), Tensor::scalar(true)}, .outputs = 1, .constant = {1, 2}})[0];
  };
  expect_close(training(0), x, 0, 0);
  EXPECT_THROW(training(0.5f), Unsupported);
  EXPECT_THROW(run_node({.op = "Dropout", .attributes = {}, .operands = {x, {}, Tensor::scalar(true)}, .outputs = 1, .constant = {2}}), Unsupported);
}

}  // namespace
}  // namespace tandem::test
