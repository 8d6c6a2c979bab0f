// ArgMax ArgMin CumSum
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "tests/support/graph_builder.h"
#include "tests/support/node_test.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

Tensor arg(const std::string& op, const Tensor& x, std::int64_t axis, std::int64_t keep, std::int64_t last = 0) {
  return run_node({.op = op, .attributes = attributes({{"axis", axis}, {"keepdims", keep}, {"select_last_index", last}}), .operands = {x}})[0];
}

TEST(Arg, FirstOrLastOfEqualOnes) {
  const Tensor x = f32({2, 3}, {2, 1, 2, 0, 5, 5});
  expect_close(arg("ArgMax", x, 1, 1), i64({2, 1}, {0, 1}));
  expect_close(arg("ArgMax", x, -1, 0, 1), i64({2}, {2, 2}));
  expect_close(arg("ArgMin", x, 0, 1), i64({1, 3}, {1, 0, 0}));
  EXPECT_THROW(arg("ArgMax", Tensor(DType::kF32, {2, 0}), 1, 1), InvalidModel);
  EXPECT_THROW(arg("ArgMax", x, 2, 1), InvalidModel);
}

TEST(Arg, NanIsTheLargestAndTheSmallest) {
  const Tensor x = f32({4}, {1, NAN, 3, NAN});
  for (const char* op : {"ArgMax", "ArgMin"}) {
    expect_close(arg(op, x, 0, 1), i64({1}, {1}));
    expect_close(arg(op, x, 0, 1, 1), i64({1}, {3}));
  }
}

TEST(Arg, ChannelsLastIsPlain) {
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (const std::int64_t a : {0, 1, 2, 3}) {
      expect_layouts_agree({.op = op, .attributes = attributes({{"axis", a}}), .operands = {random_f32({2, 5, 3, 4}, 9)}});
    }
  }
}

Tensor cumsum(const Tensor& x, std::int64_t axis, std::int64_t exclusive, std::int64_t reverse) {
  return run_node({.op = "CumSum",
                   .attributes = attributes({{"exclusive", exclusive}, {"reverse", reverse}}),
                   .operands = {x, i64({}, {axis})},
                   .constant = {1}})[0];
}

TEST(CumSum, FourWays) {
  const Tensor x = f32({3}, {1, 2, 3});
  expect_close(cumsum(x, 0, 0, 0), f32({3}, {1, 3, 6}));
  expect_close(cumsum(x, 0, 1, 0), f32({3}, {0, 1, 3}));
  expect_close(cumsum(x, -1, 0, 1), f32({3}, {6, 5, 3}));
  expect_close(cumsum(x, 0, 1, 1), f32({3}, {5, 3, 0}));
  expect_close(cumsum(f32({2, 2}, {1, 2, 3, 4}), 0, 0, 0), f32({2, 2}, {1, 2, 4, 6}));
  expect_close(cumsum(Tensor(DType::kF32, {2, 0}), 1, 0, 0), Tensor(DType::kF32, {2, 0}));
  EXPECT_THROW(cumsum(x, 1, 0, 0), InvalidModel);
}

TEST(CumSum, ChannelsLastIsPlain) {
  for (const std::int64_t a : {0, 1, 3})
    expect_layouts_agree({.op = "CumSum", .attributes = {}, .operands = {random_f32({2, 5, 3, 4}, 9), i64({}, {a})}, .constant = {1}});
}

}  // namespace
}  // namespace tandem::test
