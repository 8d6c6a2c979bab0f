// "InstanceNormalizationGrad" "GroupNormalizationGrad" "LayerNormalizationGrad" "RMSNormalizationGrad" "LRNGrad" "LpNormalizationGrad", and the
// gradients of BatchNormalization with given statistics and of MeanVarianceNormalization.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "tests/support/gradient_check.h"
#include "tests/support/graph_builder.h"
#include "tests/support/node_test.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

using Ints = std::vector<std::int64_t>;

TEST(GradientOfBatchNormalization, WithGivenStatistics) {
  for (const Shape& shape : {Shape{4, 3}, Shape{2, 5, 3, 3}, Shape{3, 2, 7}, Shape{6}}) {
    const Shape c{shape.size() == 1 ? 1 : shape[1]};
    Tensor variance = random_f32(c, 4);
    for (float& v : variance.as_mutable<float>()) v = v * v + 0.2f;
    const NodeCase node{.op = "BatchNormalization",
                        .attributes = attributes({{"epsilon", 1e-3f}}),
                        .operands = {random_f32(shape, 1), random_f32(c, 2), random_f32(c, 3), random_f32(c, 5), variance}};
    check_node_gradients(node);
    NodeCase frozen = node;
    frozen.constant = {1, 2, 3, 4};
    check_node_gradients(frozen);
  }
}

TEST(GradientOfBatchNormalization, OfTheTrainingFormIsNamed) {
  const Tensor one = f32({1}, {1});
  EXPECT_THROW(check_node_gradients({.op = "BatchNormalization",
                                     .attributes = attributes({{"training_mode", std::int64_t{1}}}),
                                     .operands = {random_f32({2, 1, 2}, 1), one, one, one, one},
                                     .constant = {1, 2, 3, 4}}),
               Unsupported);
}

TEST(GradientOfInstanceNormalization, InputScaleAndBias) {
  for (const Shape& shape : {Shape{2, 3, 5}, Shape{1, 4, 3, 3}, Shape{2, 2, 2, 3, 2}}) {
    check_node_gradients({.op = "InstanceNormalization",
                          .attributes = attributes({{"epsilon", 1e-2f}}),
                          .operands = {random_f32(shape, 1), random_f32({shape[1]}, 2), random_f32({shape[1]}, 3)}});
  }
}

TEST(GradientOfGroupNormalization, InputScaleAndBias) {
  for (const std::int64_t groups : {1, 2, 3, 6}) {
    check_node_gradients({.op = "GroupNormalization",
                          .attributes = attributes({{"num_groups", groups}}),
                          .operands = {random_f32({2, 6, 3, 2}, 1), random_f32({6}, 2), random_f32({6}, 3)}});
  }
}

TEST(GradientOfLayerNormalization, OverOneAndSeveralAxes) {
  for (const std::int64_t axis : {-1, -2, 1}) {
    const Shape x{2, 3, 5}, normalised(x.begin() + (axis < 0 ? 3 + axis : axis), x.end());
    check_node_gradients({.op = "LayerNormalization",
                          .attributes = attributes({{"axis", axis}}),
                          .operands = {random_f32(x, 1), random_f32(normalised, 2), random_f32(normalised, 3)}});
    check_node_gradients(
        {.op = "LayerNormalization", .attributes = attributes({{"axis", axis}}), .operands = {random_f32(x, 1), random_f32(normalised, 2)}});
    check_node_gradients(
        {.op = "RMSNormalization", .attributes = attributes({{"axis", axis}}), .operands = {random_f32(x, 1), random_f32(normalised, 2)}});
  }
  check_node_gradients(
      {.op = "LayerNormalization", .attributes = {}, .operands = {random_f32({3, 4}, 1), random_f32({1, 1, 4}, 2), random_f32({1}, 3)}});
  check_node_gradients({.op = "LayerNormalization", .attributes = {}, .operands = {random_f32({3, 4}, 1), random_f32({1}, 2)}});
}

TEST(GradientOfLayerNormalization, StatisticsThatAreUsedAreNamed) {
  EXPECT_THROW(
      check_node_gradients({.op = "LayerNormalization", .attributes = {}, .operands = {random_f32({3, 4}, 1), random_f32({4}, 2)}, .outputs = 3}),
      Unsupported);
}

TEST(GradientOfMeanVarianceNormalization, OverTheAxesGiven) {
  for (const Ints& axes : {Ints{0, 2, 3}, Ints{1}, Ints{2, 3}, Ints{-1}}) {
    check_node_gradients({.op = "MeanVarianceNormalization", .attributes = attributes({{"axes", axes}}), .operands = {random_f32({2, 3, 2, 4}, 1)}});
  }
}

TEST(GradientOfLRN, OddEvenAndLargeWindows) {
  for (const std::int64_t size : {1, 2, 3, 5, 12}) {
    check_node_gradients({.op = "LRN",
                          .attributes = attributes({{"size", size}, {"alpha", 0.9f}, {"beta", 0.6f}, {"bias", 0.7f}}),
                          .operands = {random_f32({2, 5, 3, 2}, 1)}});
  }
}

// The absolute value has a kink at 0: random_f32 gives none within a step of it.
TEST(GradientOfLpNormalization, OneAndTwo) {
  for (const std::int64_t p : {1, 2}) {
    for (const std::int64_t axis : {0, 1, -1}) {
      check_node_gradients({.op = "LpNormalization", .attributes = attributes({{"p", p}, {"axis", axis}}), .operands = {random_f32({3, 4, 5}, 1)}});
    }
  }
}

TEST(NormGradients, LayoutsAgreeAndZeroVectorsGiveZero) {
  const Tensor x = random_f32({2, 6, 3, 4}, 5), dy = random_f32({2, 6, 3, 4}, 6);
  expect_layouts_agree({.op = "LRNGrad", .attributes = attributes({{"size", std::int64_t{4}}}), .operands = {x, dy}});
  expect_layouts_agree({.op = "LpNormalizationGrad", .attributes = attributes({{"axis", std::int64_t{1}}}), .operands = {x, dy}});
  for (const std::int64_t p : {1, 2}) {
    expect_close(
        run_node({.op = "LpNormalizationGrad", .attributes = attributes({{"p", p}}), .operands = {f32({1, 2}, {0, 0}), f32({1, 2}, {1, 2})}})[0],
        f32({1, 2}, {0, 0}), 0, 0);
  }
}

// By hand: x = -1, 1 has mean 0 and deviation 1 (epsilon 0): every dy is taken back but what is orthogonal to 1 and x, which is nothing.
TEST(NormGradients, ByHand) {
  const Attributes exact = attributes({{"epsilon", 0.0f}});
  expect_close(
      run_node({.op = "LayerNormalizationGrad", .attributes = exact, .operands = {f32({1, 2}, {-1, 1}), f32({1}, {1}), f32({1, 2}, {3, 5})}})[0],
      f32({1, 2}, {0, 0}));
  // x = 1, 7: rms 5; dx = (g - x/5 * (1/5 g0 + 7/5 g1) / 2) / 5 with g = 2 dy = 2, 0.
  expect_close(
      run_node({.op = "RMSNormalizationGrad", .attributes = exact, .operands = {f32({1, 2}, {1, 7}), f32({1}, {2}), f32({1, 2}, {1, 0})}})[0],
      f32({1, 2}, {0.392f, -0.056f}));
}

TEST(NormGradients, RefuseWhatDoesNotFit) {
  const Tensor x = random_f32({2, 4, 3}, 1);
  EXPECT_THROW(run_node({.op = "InstanceNormalizationGrad", .attributes = {}, .operands = {x, random_f32({3}, 2), x}}), InvalidModel);
  EXPECT_THROW(run_node({.op = "GroupNormalizationGrad",
                         .attributes = attributes({{"num_groups", std::int64_t{2}}}),
                         .operands = {x, random_f32({4}, 2), random_f32({2, 4}, 3)}}),
               InvalidModel);
  EXPECT_THROW(run_node({.op = "LRNGrad", .attributes = attributes({{"size", std::int64_t{3}}}), .operands = {x, random_f32({2, 4}, 3)}}),
               InvalidModel);
}

}  // namespace
}  // namespace tandem::test
