// ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/graph_builder.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor reduce(const std::string& op, const Tensor& x, std::vector<std::int64_t> axes, std::int64_t keep = 1, const EvaluateOptions& options = {}) {
  const auto n = static_cast<std::int64_t>(axes.size());
  return run_node({.op = op, .attributes = attributes({{"keepdims", keep}}), .operands = {x, i64({n}, std::move(axes))}, .constant = {1}},
                  options)[0];
}

TEST(Reduce, EachKindOnHandValues) {
  const Tensor x = f32({2, 2}, {1, -2, 3, 4});
  expect_close(reduce("ReduceMean", x, {1}), f32({2, 1}, {-0.5f, 3.5f}));
  expect_close(reduce("ReduceSum", x, {0}), f32({1, 2}, {4, 2}));
  expect_close(reduce("ReduceMax", x, {-1}, 0), f32({2}, {1, 4}));
  expect_close(reduce("ReduceMin", x, {0, 1}, 0), f32({}, {-2}));
  expect_close(reduce("ReduceProd", x, {1}), f32({2, 1}, {-2, 12}));
  expect_close(reduce("ReduceL1", x, {1}), f32({2, 1}, {3, 7}));
  expect_close(reduce("ReduceL2", x, {1}), f32({2, 1}, {std::sqrt(5.0f), 5}));
  expect_close(reduce("ReduceSumSquare", x, {1}), f32({2, 1}, {5, 25}));
  expect_close(reduce("ReduceLogSum", f32({2}, {1, 2}), {0}), f32({1}, {std::log(3.0f)}));
  expect_close(reduce("ReduceLogSumExp", f32({2}, {1000, 1000}), {0}), f32({1}, {1000 + std::log(2.0f)}));
}

TEST(Reduce, NoAxesMeansAllUnlessTheAttributeSaysNone) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  expect_close(run_node({.op = "ReduceSum", .attributes = {}, .operands = {x}})[0], f32({1, 1}, {10}));
  expect_close(run_node({.op = "ReduceSum", .attributes = attributes({{"noop_with_empty_axes", std::int64_t{1}}}), .operands = {x}})[0], x);
}

TEST(Reduce, NothingToReduceGivesTheNeutralElement) {
  const Tensor none(DType::kF32, {2, 0});
  expect_close(reduce("ReduceSum", none, {1}), f32({2, 1}, {0, 0}));
  expect_close(reduce("ReduceProd", none, {1}), f32({2, 1}, {1, 1}));
  expect_close(reduce("ReduceMax", none, {1}), f32({2, 1}, {-kInfinity, -kInfinity}));
  expect_close(reduce("ReduceMin", none, {1}), f32({2, 1}, {kInfinity, kInfinity}));
  expect_close(reduce("ReduceLogSum", none, {1}), f32({2, 1}, {-kInfinity, -kInfinity}));
  expect_close(reduce("ReduceLogSumExp", none, {1}), f32({2, 1}, {-kInfinity, -kInfinity}));
}

TEST(Reduce, NanWinsAndInfinitiesStay) {
  EXPECT_TRUE(std::isnan(reduce("ReduceMax", f32({3}, {1, NAN, 2}), {0}).as<float>()[0]));
  EXPECT_TRUE(std::isnan(reduce("ReduceMin", f32({3}, {1, NAN, 2}), {0}).as<float>()[0]));
  expect_close(reduce("ReduceLogSumExp", f32({2}, {kInfinity, 1}), {0}), f32({1}, {kInfinity}));
}

TEST(Reduce, ChannelsLastIsPlainToTheBit) {
  const Tensor x = random_f32({2, 70, 5, 3}, 7);
  for (const char* op : {"ReduceMean", "ReduceMax", "ReduceLogSumExp", "ReduceL2"}) {
    for (const std::vector<std::int64_t>& axes : {std::vector<std::int64_t>{2, 3}, {1}, {0, 2}}) {
      EvaluateOptions last;
      last.layout = Layout::kChannelsLast;
      last.extra_pitch = 2;
      expect_close(reduce(op, x, axes, 1, last), reduce(op, x, axes), 0, 0);
    }
  }
}

TEST(Reduce, IntegersWrapAroundAndNeverLeaveTheirRange) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(), kMost = std::numeric_limits<std::int64_t>::max();
  expect_close(reduce("ReduceSum", i64({2}, {kMost, 1}), {0}), i64({1}, {kLeast}));
  expect_close(reduce("ReduceProd", i64({2}, {kMost, 2}), {0}), i64({1}, {-2}));
  expect_close(reduce("ReduceL1", i64({2}, {-3, 4}), {0}), i64({1}, {7}));
  expect_close(reduce("ReduceL1", i64({1}, {kLeast}), {0}), i64({1}, {kLeast}));
  expect_close(reduce("ReduceSumSquare", i64({2}, {std::int64_t{1} << 32, 3}), {0}), i64({1}, {9}));
  expect_close(reduce("ReduceLogSum", i64({1}, {0}), {0}), i64({1}, {kLeast}));
  expect_close(reduce("ReduceMax", Tensor(DType::kI64, {0}), {0}), i64({1}, {kLeast}));
  expect_close(reduce("ReduceMin", Tensor(DType::kI64, {0}), {0}), i64({1}, {kMost}));
  const std::uint64_t large[] = {std::uint64_t{1} << 63, (std::uint64_t{1} << 63) - 2}, mean[] = {std::numeric_limits<std::uint64_t>::max() / 2};
  expect_close(reduce("ReduceMean", Tensor::of<std::uint64_t>({2}, large), {0}), Tensor::of<std::uint64_t>({1}, mean));
}

TEST(Reduce, IntegersStayExact) {
  expect_close(reduce("ReduceSum", i64({2}, {std::int64_t{1} << 60, 1}), {0}), i64({1}, {(std::int64_t{1} << 60) + 1}));
  expect_close(reduce("ReduceMean", i64({3}, {1, 2, 4}), {0}), i64({1}, {2}));
}

}  // namespace
}  // namespace tandem::test
