// Backward of operators that move elements: views, copies, slices, pads, gathering and scattering, resizing.
#include <gtest/gtest.h>

#include "runtime/ops/gather_sum.h"
#include "tests/support/gradient_check.h"
#include "tests/support/graph_builder.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

using Ints = std::vector<std::int64_t>;

Tensor list(Ints values) { return Tensor::ints(values); }

TEST(MovementGradients, Views) {
  const Tensor x = random_f32({2, 3, 1, 5}, 1);
  check_node_gradients({"Reshape", {}, {x, list({6, -1})}, 1, {1}});
  check_node_gradients({"Reshape", {}, {x, list({0, 5, 3})}, 1, {1}});
  for (const std::int64_t axis : {0, 1, 3, 4}) check_node_gradients({"Flatten", attributes({{"axis", axis}}), {x}});
  check_node_gradients({"Squeeze", {}, {x, list({2})}, 1, {1}});
  check_node_gradients({"Unsqueeze", {}, {x, list({0, -1})}, 1, {1}});
}

TEST(MovementGradients, TransposesAndBlocks) {
  check_node_gradients({"Transpose", {}, {random_f32({2, 3, 5}, 1)}});
  check_node_gradients({"Transpose", attributes({{"perm", Ints{2, 0, 3, 1}}}), {random_f32({2, 3, 5, 4}, 1)}});
  for (const char* mode : {"DCR", "CRD"}) {
    check_node_gradients({"DepthToSpace", attributes({{"blocksize", std::int64_t{2}}, {"mode", std::string(mode)}}), {random_f32({2, 12, 3, 2}, 1)}});
  }
  check_node_gradients({"SpaceToDepth", attributes({{"blocksize", std::int64_t{3}}}), {random_f32({2, 2, 3, 6}, 1)}});
}

TEST(MovementGradients, Repetition) {
  check_node_gradients({"Expand", {}, {random_f32({3, 1}, 1), list({2, 1, 5})}, 1, {1}});
  check_node_gradients({"Expand", {}, {random_f32({2, 3}, 1), list({1})}, 1, {1}});
  check_node_gradients({"Tile", {}, {random_f32({2, 3, 1}, 1), list({1, 2, 3})}, 1, {1}});
  check_node_gradients({"Tile", {}, {random_f32({2, 3}, 1), list({1, 1})}, 1, {1}});
}

TEST(MovementGradients, ConcatAndSplit) {
  for (const std::int64_t axis : {0, 1, -1}) {
    Shape second{2, 3, 4};
    second[axis < 0 ? 2 : static_cast<std::size_t>(axis)] = 5;
    check_node_gradients({"Concat", attributes({{"axis", axis}}), {random_f32({2, 3, 4}, 1), random_f32(second, 2), random_f32({2, 3, 4}, 3)}});
    check_node_gradients({"Concat", attributes({{"axis", axis}}), {random_f32({2, 3, 4}, 1), random_f32(second, 2)}, 1, {0}});
  }
  check_node_gradients({"Concat", attributes({{"axis", std::int64_t{1}}}), {random_f32({2, 3}, 1)}});
  check_node_gradients({"Split", attributes({{"axis", std::int64_t{1}}}), {random_f32({2, 7, 3}, 1), list({2, 1, 4})}, 3, {1}});
  check_node_gradients({"Split", attributes({{"axis", std::int64_t{0}}, {"num_outputs", std::int64_t{3}}}), {random_f32({7, 2}, 1)}, 3});
}

// Only the second of three parts is used; nothing reaches the others.
TEST(MovementGradients, SplitWithUnusedParts) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::kF32, {2, 6});
  Node split;
  split.op = "Split";
  split.attributes = attributes({{"axis", std::int64_t{1}}});
  split.inputs = {x};
  for (const char* name : {"a", "b", "c"}) split.outputs.push_back(b.graph.add_value(name));
  b.graph.nodes.push_back(split);
  b.output(b.node("y", "Sin", {split.outputs[1]}));
  check_gradients(b.graph, {random_f32({2, 6}, 1)});
}

TEST(MovementGradients, Slices) {
  const Tensor x = random_f32({7, 6, 5}, 1);
  const auto check = [&](Ints starts, Ints ends, Ints axes, Ints steps) {
    check_node_gradients({"Slice", {}, {x, list(starts), list(ends), list(axes), list(steps)}, 1, {1, 2, 3, 4}});
  };
  check({1, 2}, {5, 6}, {0, 1}, {1, 1});
  check({0}, {99}, {2}, {1});
  check({-3}, {-1}, {1}, {1});
  check({1, 4}, {7, 0}, {0, 2}, {2, -2});
  check({-1, 1, 0}, {-99, 5, 3}, {0, 1, 2}, {-1, 3, 1});
  check({3}, {3}, {0}, {1});
}

TEST(MovementGradients, Pads) {
  const Tensor x = random_f32({2, 5, 4}, 1), value = f32({}, {0.5f});
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    const Attributes a = attributes({{"mode", std::string(mode)}});
    SCOPED_TRACE(mode);
    check_node_gradients({"Pad", a, {x, list({0, 2, 1, 0, 4, 3})}, 1, {1}});
    check_node_gradients({"Pad", a, {x, list({3, -1, 2, -2}), {}, list({2, 1})}, 1, {1, 3}});
  }
  check_node_gradients({"Pad", attributes({{"mode", std::string("wrap")}}), {x, list({9, 13}), {}, list({1})}, 1, {1, 3}});
  check_node_gradients({"Pad", {}, {x, list({0, 2, 1, 0, 1, -3}), value}, 1, {1}});
  check_node_gradients({"CenterCropPad", {}, {x, list({4, 3, 4})}, 1, {1}});
}

TEST(MovementGradients, Gathering) {
  const Tensor x = random_f32({4, 5, 3}, 1), indices = i64({2, 3}, {1, -1, 1, 0, 2, 1});
  for (const std::int64_t axis : {0, 1, 2}) {
    check_node_gradients({"Gather", attributes({{"axis", axis}}), {x, indices}});
    check_node_gradients({"Gather", attributes({{"axis", axis}}), {x, i64({}, {-2})}, 1, {1}});
  }
  check_node_gradients({"GatherElements", attributes({{"axis", std::int64_t{1}}}), {x, i64({2, 3, 2}, {0, 1, 1, 1, -1, 0, 3, 2, 2, 2, 4, 0})}});
  check_node_gradients({"GatherND", {}, {x, i64({3, 2}, {0, 1, -1, 4, 0, 1})}});
  check_node_gradients({"GatherND", attributes({{"batch_dims", std::int64_t{1}}}), {x, i64({4, 2, 1}, {0, 0, 1, 2, -1, 3, 2, 2})}});
  check_node_gradients({"GatherND", attributes({{"batch_dims", std::int64_t{1}}}), {x, typed<std::int32_t>({4, 2}, {0, 0, 1, 2, -1, 1, 2, 2})}});
}

TEST(MovementGradients, Scattering) {
  const Tensor x = random_f32({4, 3}, 1), updates = random_f32({2, 3}, 2), indices = i64({2, 3}, {1, 0, 3, 1, 2, -1});
  for (const char* reduction : {"none", "add"}) {
    const Attributes a = attributes({{"reduction", std::string(reduction)}});
    check_node_gradients({"ScatterElements", a, {x, indices, updates}});
    check_node_gradients({"ScatterND", a, {x, i64({3, 1}, {2, 0, 2}), random_f32({3, 3}, 3)}});
    check_node_gradients({"ScatterND", a, {x, i64({2, 2}, {2, 0, 2, 0}), random_f32({2}, 3)}});
  }
  EXPECT_THROW(check_node_gradients({"ScatterElements", attributes({{"reduction", std::string("mul")}}), {x, indices, updates}}), Unsupported);
}

TEST(MovementGradients, ValuesOfOneHot) {
  for (const std::int64_t axis : {-1, 0, 1}) {
    check_node_gradients({"OneHot", attributes({{"axis", axis}}), {i64({2, 3}, {1, 0, -1, 7, 3, 1}), i64({}, {4}), f32({2}, {0.2f, 0.7f})}, 1, {1}});
  }
}

TEST(MovementGradients, CumSumTriluAndTopK) {
  for (const std::int64_t exclusive : {0, 1}) {
    for (const std::int64_t reverse : {0, 1}) {
      check_node_gradients(
          {"CumSum", attributes({{"exclusive", exclusive}, {"reverse", reverse}}), {random_f32({3, 4, 2}, 1), i64({}, {1})}, 1, {1}});
    }
  }
  for (const std::int64_t upper : {0, 1})
    check_node_gradients({"Trilu", attributes({{"upper", upper}}), {random_f32({2, 4, 5}, 1), i64({}, {1})}, 1, {1}});
  for (const std::size_t outputs : {1u, 2u}) {
    check_node_gradients({"TopK", attributes({{"axis", std::int64_t{1}}}), {random_f32({2, 7, 3}, 1), list({3})}, outputs, {1}});
  }
}

Attributes resize(const char* mode, const char* coordinates, Attributes more = {}) {
  more.set("mode", std::string(mode));
  more.set("coordinate_transformation_mode", std::string(coordinates));
  return more;
}

TEST(MovementGradients, Resizing) {
  const Tensor x = random_f32({2, 3, 5, 4}, 1);
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinates : {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"}) {
      SCOPED_TRACE(std::string(mode) + " " + coordinates);
      check_node_gradients({"Resize", resize(mode, coordinates), {x, {}, {}, list({2, 3, 7, 9})}, 1, {3}});
      check_node_gradients({"Resize", resize(mode, coordinates), {x, {}, {}, list({2, 3, 3, 6})}, 1, {3}});
    }
  }
  check_node_gradients({"Resize", resize("nearest", "asymmetric"), {x, {}, f32({4}, {1, 1, 2, 2})}, 1, {2}});
  check_node_gradients(
      {"Resize", resize("linear", "half_pixel", attributes({{"antialias", std::int64_t{1}}})), {x, {}, {}, list({2, 3, 2, 3})}, 1, {3}});
  check_node_gradients(
      {"Resize", resize("cubic", "half_pixel", attributes({{"exclude_outside", std::int64_t{1}}})), {x, {}, {}, list({2, 3, 8, 3})}, 1, {3}});
  check_node_gradients({"Resize", resize("linear", "half_pixel"), {x, {}, f32({4}, {1, 1, 1, 1})}, 1, {2}});
  const Tensor roi = f32({8}, {0, 0, -0.2f, 0.1f, 1, 1, 0.9f, 1.3f});
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    check_node_gradients(
        {"Resize", resize(mode, "tf_crop_and_resize", attributes({{"extrapolation_value", 3.0f}})), {x, roi, {}, list({2, 3, 7, 6})}, 1, {1, 3}});
  }
}

// Along axis 1: y0 = x0 + 2 x2, y1 = nothing, y2 = -x1; along axis 2 the two elements change places.
TEST(MovementGradients, GatherSum) {
  const NodeCase c{"GatherSum",
                   attributes({{"axes", Ints{1, 2}}}),
                   {f32({1, 3, 2}, {1, 2, 3, 4, 5, 6}), list({0, 2, 2, 3}), list({0, 2, 1}), typed<double>({3}, {1, 2, -1}), list({0, 1, 2}),
                    list({1, 0}), typed<double>({2}, {1, 1})},
                   1,
                   {1, 2, 3, 4, 5, 6}};
  expect_close(run_node(c)[0], f32({1, 3, 2}, {14, 11, 0, 0, -4, -3}), 0, 0);
}

TEST(MovementGradients, GatherSumInAllLayouts) {
  NodeCase c{"GatherSum",
             attributes({{"axes", Ints{2, 3}}}),
             {random_f32({2, 5, 4, 3}, 1), list({0, 2, 4, 4}), list({0, 1, 2, 3}), typed<double>({4}, {0.5, 0.25, 1, -1}), list({0, 1, 3}),
              list({2, 0, 1}), typed<double>({3}, {1, 0.5, 0.125})},
             1,
             {1, 2, 3, 4, 5, 6}};
  expect_layouts_agree(c);
}

TEST(MovementGradients, TransposedTaps) {
  const ResizeTaps t{{0, 2, 2, 3}, {0, 2, 0}, {1, 2, 5}, 0, 3};
  const ResizeTaps back = transposed(t, 4);
  EXPECT_EQ(back.first, (Ints{0, 2, 2, 3, 3}));
  EXPECT_EQ(back.index, (Ints{0, 2, 0}));
  EXPECT_EQ(back.weight, (std::vector<double>{1, 5, 2}));
}

}  // namespace
}  // namespace tandem::test
