// ArgMax ArgMin CumSum
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/support/graph_builder.h"
#include "tests/support/node_test.h"

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
}

}  // namespace
}  // namespace tandem::test
