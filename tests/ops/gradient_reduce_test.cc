// Backward of the reductions, and sums over all but the channels.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/graph/gradient.h"
#include "runtime/graph/infer.h"
#include "tests/support/gradient_check.h"
#include "tests/support/graph_builder.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

// Positive, none near 0.
Tensor positive(Shape shape, std::uint64_t seed) {
  Tensor t = random_f32(std::move(shape), seed);
  for (float& v : t.as_mutable<float>()) v = 1.2f + 0.6f * v;
  return t;
}

TEST(ReduceGradients, AllKindsAndAxes) {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum",
                         "ReduceLogSumExp"}) {
    SCOPED_TRACE(op);
    for (const std::int64_t keep : {0, 1}) {
      const Attributes a = attributes({{"keepdims", keep}});
      for (const std::vector<std::int64_t>& axes : {std::vector<std::int64_t>{0}, {1}, {-1}, {0, 2}, {2, 3}}) {
        check_node_gradients({op, a, {positive({2, 3, 4, 3}, 1), Tensor::ints(axes)}, 1, {1}});
      }
      check_node_gradients({op, a, {positive({3, 5}, 2)}});
    }
    const bool signs = std::string(op) != "ReduceLogSum";  // needs a positive sum
    if (signs) check_node_gradients({op, {}, {random_f32({4, 5}, 3), Tensor::ints(std::vector<std::int64_t>{1})}, 1, {1}});
    check_node_gradients({op, attributes({{"noop_with_empty_axes", std::int64_t{1}}}), {positive({3, 5}, 2)}});
  }
}

std::vector<Tensor> gradient_of(const char* op, const Tensor& x, const Tensor& dy) {
  GraphBuilder b;
  const ValueId in = b.input("x", DType::kF32, x.shape());
  const ValueId y = b.node("y", op, {in, b.constant("axes", Tensor::ints(std::vector<std::int64_t>{1}))});
  infer(b.graph, {.shapes = {x.shape()}, .values = {}});
  const GradientSeed seed{y, b.constant("dy", dy)};
  b.output(add_gradients(b.graph, {&seed, 1}, {&in, 1})[0]);
  return run_planned(b.graph, {x});
}

TEST(ReduceGradients, EqualLargestElementsShare) {
  const auto g = gradient_of("ReduceMax", f32({2, 4}, {1, 3, 3, 0, 2, 2, 2, 2}), f32({2, 1}, {6, 8}));
  expect_close(g[0], f32({2, 4}, {0, 3, 3, 0, 2, 2, 2, 2}), 0, 0);
}

TEST(ReduceGradients, ProductsWithZeros) {
  const auto g = gradient_of("ReduceProd", f32({3, 3}, {2, 3, 5, 2, 0, 5, 0, 3, 0}), f32({3, 1}, {1, 10, 100}));
  expect_close(g[0], f32({3, 3}, {15, 10, 6, 0, 100, 0, 0, 0, 0}), 1e-6, 0);
}

TEST(ReduceGradients, NormOfZerosHasGradientZero) {
  expect_close(gradient_of("ReduceL2", f32({1, 3}, {0, 0, 0}), f32({1, 1}, {1}))[0], f32({1, 3}, {0, 0, 0}), 0, 0);
}

// Channels behind pixels and in front of them, odd counts on both sides of a block's length, sums of one column and of many.
TEST(ReduceGradients, LongSumsAgreeWithDoublePrecision) {
  for (const Shape& shape : {Shape{3, 5, 31, 37}, Shape{2, 70, 23, 23}, Shape{1, 1, 4099, 1}, Shape{4, 3, 16, 16}}) {
    SCOPED_TRACE(to_string(shape));
    const Tensor x = random_f32(shape, 9);
    const auto values = x.as<float>();
    const std::size_t channels = static_cast<std::size_t>(shape[1]), pixels = static_cast<std::size_t>(shape[2] * shape[3]);
    std::vector<double> sum(channels, 0.0), square(channels, 0.0);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double v = values[i];
      sum[i / pixels % channels] += v;
      square[i / pixels % channels] += v * v;
    }
    Tensor want_sum(DType::kF32, {shape[1]}), want_square(DType::kF32, {shape[1]});
    for (std::size_t i = 0; i < channels; ++i) {
      want_sum.as_mutable<float>()[i] = static_cast<float>(sum[i]);
      want_square.as_mutable<float>()[i] = static_cast<float>(square[i]);
    }
    const Attributes drop = attributes({{"keepdims", std::int64_t{0}}});
    const Tensor axes = Tensor::ints(std::vector<std::int64_t>{0, 2, 3});
    const NodeCase of_sum{"ReduceSum", drop, {x, axes}, 1, {1}}, of_square{"ReduceSumSquare", drop, {x, axes}, 1, {1}};
    expect_close(run_node(of_sum)[0], want_sum, 1e-7, 1e-9);
    expect_close(run_node(of_square)[0], want_square, 1e-7, 0);
    expect_layouts_agree(of_sum);
    expect_layouts_agree(of_square);
  }
}

}  // namespace
}  // namespace tandem::test
