// A batch that the exporter baked in goes only where the proof of the cut holds.
#include <gtest/gtest.h>

#include "tests/support/import.h"
#include "tests/support/node_test.h"
#include "tests/support/onnx_builder.h"

namespace tandem::test {
namespace {

OnnxModel reshaping(const Ints& input, const Ints& target) {
  OnnxModel model;
  model.graph = {.nodes = {{.op = "Reshape", .inputs = {"x", "t"}, .outputs = {"y"}, .attributes = {}, .name = "flat"}},
                 .inputs = {value_bytes("x", 1, input)},
                 .outputs = {value_bytes("y", 1, {2, 6})},
                 .initializers = {int64_tensor("t", {static_cast<std::int64_t>(target.size())}, target)}};
  return model;
}

TEST(FreeBatch, FixedBatchFollowsTheData) {
  const Graph graph = import_text(model_bytes(reshaping({2, 3, 2}, {2, 6})));
  EXPECT_EQ(graph.declared_inputs[0].shape, (Shape{-1, 3, 2}));
  EXPECT_EQ(graph.declared_outputs[0].shape, (Shape{-1, 6}));
  EXPECT_EQ(constant_operand(graph, graph.nodes[0], 1).to_ints(), (Ints{0, 6}));
  ASSERT_EQ(graph.origin.notes.size(), 1u);
  EXPECT_NE(graph.origin.notes[0].find("exported for a batch of 2"), std::string::npos);
  EXPECT_EQ(run_graph(graph, {random_f32({5, 3, 2}, 1)})[0].shape(), (Shape{5, 6}));
}

TEST(FreeBatch, BakedConstantInADynamicFile) {
  const Graph graph = import_text(model_bytes(reshaping({-1, 3, 2}, {4, -1})));
  EXPECT_EQ(run_graph(graph, {random_f32({3, 3, 2}, 1)})[0].shape(), (Shape{3, 6}));
}

TEST(FreeBatch, MergedBatchBecomesTheOpenDimension) {
  const Graph graph = import_text(model_bytes(reshaping({2, 3, 2}, {6, 2})));
  EXPECT_EQ(constant_operand(graph, graph.nodes[0], 1).to_ints(), (Ints{-1, 2}));
}

TEST(FreeBatch, StaysWhereSamplesAreMixed) {
  const Graph graph = import_text(model_bytes(reshaping({2, 3, 2}, {3, 4})));
  EXPECT_EQ(graph.declared_inputs[0].shape, (Shape{2, 3, 2}));
  EXPECT_EQ(constant_operand(graph, graph.nodes[0], 1).to_ints(), (Ints{3, 4}));
  EXPECT_TRUE(graph.origin.notes.empty());
}

}  // namespace
}  // namespace tandem::test
