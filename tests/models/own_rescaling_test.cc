// Which networks show that they take pixels from 0 to 255.
#include "models/own_rescaling.h"

#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"

namespace tandem::test {
namespace {

Tensor values(Shape shape, std::vector<float> v) { return Tensor::of<float>(std::move(shape), std::span<const float>(v)); }

// x * 1/127.5 - 1 behind a Transpose, as Keras exports Rescaling; a convolution follows.
TEST(OwnRescaling, IsFoundInFrontOfTheFirstLayer) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::kF32, {-1, 8, 8, 3});
  const ValueId t = b.node("t", "Transpose", {x}), m = b.node("rescaling/mul", "Mul", {b.constant("s", Tensor::scalar(1 / 127.5f)), t});
  const ValueId a = b.node("add", "Add", {m, b.constant("o", Tensor::scalar(-1.0f))});
  b.output(b.node("conv", "Conv", {a, b.constant("w", values({1, 3, 1, 1}, {1, 2, 3}))}));
  EXPECT_EQ(models::own_rescaling(b.graph), "rescaling/mul");
}

// (x - mean) / std for each channel: of pixels, or of numbers from 0 to 1.
std::string of_normalisation(float scale) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::kF32, {-1, 3, 8, 8});
  const ValueId s = b.node("sub", "Sub", {x, b.constant("mean", values({1, 3, 1, 1}, {0.5f * scale, 0.4f * scale, 0.4f * scale}))});
  const ValueId d = b.node("div", "Div", {s, b.constant("std", values({1, 3, 1, 1}, {0.23f * scale, 0.22f * scale, 0.225f * scale}))});
  b.output(b.node("conv", "Conv", {d, b.constant("w", values({1, 3, 1, 1}, {1, 2, 3}))}));
  return models::own_rescaling(b.graph);
}

TEST(OwnRescaling, TellsPixelsFromNumbersBelowOne) {
  EXPECT_EQ(of_normalisation(255), "div");
  EXPECT_EQ(of_normalisation(1), "");
}

TEST(OwnRescaling, AWeightIsNoScaleAndABranchNoProof) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::kF32, {-1, 3, 8, 8});
  b.output(b.node("conv", "Conv", {x, b.constant("w", values({1, 3, 1, 1}, {0.01f, 0.01f, 0.01f}))}));
  EXPECT_EQ(models::own_rescaling(b.graph), "");
  b.node("mul", "Mul", {x, b.constant("s", Tensor::scalar(1 / 255.0f))});
  EXPECT_EQ(models::own_rescaling(b.graph), "");
}

}  // namespace
}  // namespace tandem::test
