// Older forms become those of opset 24. What they compute is tested by the cases (cases_test.cc) and ONNX's own data.
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/support/import.h"
#include "tests/support/node_test.h"
#include "tests/support/onnx_builder.h"

namespace tandem::test {
namespace {

Graph import_one(const std::string& op, std::int64_t opset, const std::vector<Ints>& shapes, const std::vector<std::string>& attributes,
                 std::size_t outputs = 1) {
  return import_text(model_bytes(one_node(op, opset, shapes, attributes, outputs)));
}

Ints operand_ints(const Graph& graph, std::size_t operand) { return constant_operand(graph, graph.nodes.back(), operand).to_ints(); }

bool has_note(const Graph& graph, const std::string& part) {
  for (const std::string& note : graph.origin.notes) {
    if (note.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST(Rules, AttributesThatBecameOperands) {
  EXPECT_EQ(operand_ints(import_one("Squeeze", 11, {{2, 1}}, {ints_attribute("axes", {1})}), 1), (Ints{1}));
  EXPECT_EQ(operand_ints(import_one("Unsqueeze", 11, {{2}}, {ints_attribute("axes", {0, -1})}), 1), (Ints{0, -1}));
  EXPECT_EQ(operand_ints(import_one("Split", 11, {{3}}, {ints_attribute("split", {1, 2})}, 2), 1), (Ints{1, 2}));
  const Graph slice =
      import_one("Slice", 9, {{5}}, {ints_attribute("starts", {1}), ints_attribute("ends", {1ll << 62}), ints_attribute("axes", {0})});
  EXPECT_EQ(operand_ints(slice, 1), (Ints{1}));
  EXPECT_EQ(operand_ints(slice, 2), (Ints{1ll << 62}));
  EXPECT_EQ(operand_ints(slice, 3), (Ints{0}));
  EXPECT_EQ(operand_ints(import_one("ReduceMean", 13, {{2, 3}}, {ints_attribute("axes", {-1})}), 1), (Ints{-1}));
  EXPECT_EQ(operand_ints(import_one("ReduceSum", 11, {{2, 3}}, {ints_attribute("axes", {0})}), 1), (Ints{0}));
  EXPECT_EQ(operand_ints(import_one("TopK", 9, {{5}}, {int_attribute("k", 3)}, 2), 1), (Ints{3}));
  EXPECT_EQ(operand_ints(import_one("Reshape", 1, {{6}}, {ints_attribute("shape", {2, 3})}), 1), (Ints{2, 3}));
  const Graph pad = import_one("Pad", 2, {{4}}, {ints_attribute("pads", {1, 0}), float_attribute("value", 7)});
  EXPECT_EQ(operand_ints(pad, 1), (Ints{1, 0}));
  expect_close(constant_operand(pad, pad.nodes[0], 2), f32({}, {7}));
  const Graph clip = import_one("Clip", 6, {{2}}, {float_attribute("max", 6)});
  EXPECT_EQ(clip.nodes[0].inputs[1], kNoValue);
  expect_close(constant_operand(clip, clip.nodes[0], 2), f32({}, {6}));
}

TEST(Rules, RefusesOperandsBeforeTheirOpset) {
  for (const std::string op : {"Squeeze", "Slice", "ReduceMean", "Split"}) {
    const std::int64_t opset = op == "Slice" ? 9 : op == "ReduceMean" ? 17 : 12;
    EXPECT_NE(refusal(model_bytes(one_node(op, opset, {{2, 1}, {1}}, {}))).find("exists since opset"), std::string::npos) << op;
  }
  EXPECT_NE(refusal(model_bytes(one_node("ReduceMean", 17, {{2, 1}}, {ints_attribute("axes", {0}), int_attribute("noop_with_empty_axes", 0)})))
                .find("axes as a second input"),
            std::string::npos);
}

TEST(Rules, EqualSplitSaysHowManyParts) {
  const Graph graph = import_one("Split", 13, {{4}}, {}, 2);
  EXPECT_EQ(graph.nodes[0].attributes.integer("num_outputs"), 2);
}

// Opset 6: the operand starts at `axis`. Expected values by hand: x[i][j] + w[i].
TEST(Rules, AxisBroadcastWithKnownRanks) {
  const Graph graph = import_one("Add", 6, {{2, 2}, {2}}, {int_attribute("broadcast", 1), int_attribute("axis", 0)});
  EXPECT_EQ(operators_of(graph), "Unsqueeze Add");
}

TEST(Rules, AxisBroadcastWithUnknownRank) {
  OnnxModel model = one_node("Add", 6, {{2, 2}, {2}, {2}}, {int_attribute("broadcast", 1), int_attribute("axis", 0)});
  model.graph.nodes[0].inputs = {"r", "x1"};
  model.graph.inputs[2] = value_bytes("x2", 7, {2});
  model.graph.nodes.push_back({.op = "Reshape", .inputs = {"x0", "x2"}, .outputs = {"r"}});
  const Graph graph = import_text(model_bytes(model));
  const auto out = run_graph(graph, {f32({2, 2}, {1, 2, 3, 4}), f32({2}, {10, 20}), i64({2}, {2, 2})});
  expect_close(out[0], f32({2, 2}, {11, 12, 23, 24}));
}

TEST(Rules, SoftmaxBefore13IsOverAllThatFollowsTheAxis) {
  EXPECT_EQ(operators_of(import_one("Softmax", 11, {{1, 2, 2}}, {})), "Flatten Softmax Shape Reshape");
  const Graph last = import_one("LogSoftmax", 11, {{4, 10}}, {});
  EXPECT_EQ(operators_of(last), "LogSoftmax");
  EXPECT_EQ(last.nodes[0].attributes.integer("axis"), -1);
  const Graph modern = import_one("Softmax", 13, {{1, 2, 2}}, {int_attribute("axis", 1)});
  EXPECT_EQ(operators_of(modern), "Softmax");
  EXPECT_EQ(modern.nodes[0].attributes.integer("axis"), 1);
}

TEST(Rules, UpsampleAndResize10AreAsymmetric) {
  const Graph up = import_one("Upsample", 7, {{1, 1, 1, 2}}, {text_attribute("mode", "linear"), floats_attribute("scales", {1, 1, 1, 2})});
  EXPECT_EQ(up.nodes[0].op, "Resize");
  EXPECT_EQ(up.nodes[0].attributes.text("coordinate_transformation_mode"), "asymmetric");
  EXPECT_EQ(up.nodes[0].attributes.text("mode"), "linear");
  EXPECT_EQ(up.nodes[0].inputs[1], kNoValue);
  expect_close(constant_operand(up, up.nodes[0], 2), f32({4}, {1, 1, 1, 2}));
  const Graph ten = import_one("Resize", 10, {{1, 1, 1, 2}, {4}}, {});
  EXPECT_EQ(ten.nodes[0].inputs.size(), 3u);
  EXPECT_EQ(ten.nodes[0].attributes.text("nearest_mode"), "floor");
  EXPECT_NE(refusal(model_bytes(one_node("Upsample", 10, {{1, 1, 1, 2}, {4}}, {}))).find("until opset 9"), std::string::npos);
}

TEST(Rules, BatchNormalizationForInferenceUnlessStatisticsAreRead) {
  const std::vector<Ints> shapes{{2, 1, 1, 1}, {1}, {1}, {1}, {1}};
  OnnxModel unread = one_node("BatchNormalization", 14, shapes, {int_attribute("training_mode", 1)}, 3);
  unread.graph.outputs.resize(1);
  const Graph inference = import_text(model_bytes(unread));
  EXPECT_EQ(inference.nodes[0].attributes.integer("training_mode"), 0);
  EXPECT_EQ(inference.nodes[0].outputs.size(), 1u);
  EXPECT_TRUE(has_note(inference, "moving statistics"));
  const Graph training = import_one("BatchNormalization", 14, shapes, {int_attribute("training_mode", 1)}, 3);
  EXPECT_EQ(training.nodes[0].attributes.integer("training_mode"), 1);
  EXPECT_EQ(training.nodes[0].outputs.size(), 3u);
  OnnxModel five = one_node("BatchNormalization", 9, shapes, {}, 5);
  EXPECT_NE(refusal(model_bytes(five)).find("saved_mean"), std::string::npos);
  const Graph old = import_one("BatchNormalization", 6, shapes, {int_attribute("is_test", 1), int_attribute("spatial", 1)});
  EXPECT_EQ(old.nodes[0].attributes.integer("training_mode"), 0);
  EXPECT_FALSE(old.nodes[0].attributes.has("is_test"));
}

// Weight standardisation: the statistics of a weight, in whatever mode the network is.
TEST(Rules, BatchNormalizationOfWeightsKeepsBatchStatistics) {
  OnnxModel model = one_node("BatchNormalization", 14, {{1, 2, 1}, {2}, {2}, {2}, {2}}, {int_attribute("training_mode", 1)}, 3);
  model.graph.nodes[0].inputs[0] = "w";
  model.graph.outputs.resize(1);
  model.graph.initializers = {float_tensor("w", {1, 2, 1}, {1, 2})};
  const Graph graph = import_text(model_bytes(model));
  EXPECT_EQ(graph.nodes[0].attributes.integer("training_mode"), 1);
  EXPECT_EQ(graph.nodes[0].outputs.size(), 3u);
}

TEST(Rules, BatchNormalizationAsWrittenKeepsTrainingMode) {
  ImportOptions as_written;
  as_written.as_written = true;
  OnnxModel model = one_node("BatchNormalization", 14, {{2, 1}, {1}, {1}, {1}, {1}}, {int_attribute("training_mode", 1)}, 3);
  model.graph.outputs.resize(1);
  OnnxModel five = one_node("BatchNormalization", 9, {{2, 1}, {1}, {1}, {1}, {1}}, {}, 5);
  five.graph.outputs.resize(1);
  for (const OnnxModel& m : {model, five}) {
    const Graph graph = import_text(model_bytes(m), {}, as_written);
    const auto out = run_graph(graph, {f32({2, 1}, {1, 5}), f32({1}, {1}), f32({1}, {0}), f32({1}, {7}), f32({1}, {9})});
    expect_close(out[0], f32({2, 1}, {-1, 1}), 1e-5, 1e-5);  // the batch's mean 3 and deviation 2, not 7 and 3
  }
}

TEST(Rules, BatchNormalizationWithoutSpatialIsArithmetic) {
  const Graph graph = import_one("BatchNormalization", 7, {{2, 1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}}, {int_attribute("spatial", 0)});
  const auto out =
      run_graph(graph, {f32({2, 1, 2}, {1, 2, 3, 4}), f32({1, 2}, {2, 3}), f32({1, 2}, {5, 6}), f32({1, 2}, {1, 1}), f32({1, 2}, {4, 9})});
  expect_close(out[0], f32({2, 1, 2}, {5, 7, 7, 9}), 1e-5, 1e-5);  // (x - mean) / sqrt(var) * scale + bias
}

// What nobody reads could change the answer: a form of another opset, a name that no form has.
TEST(Rules, UnknownAttributesAreRefused) {
  const auto said = [](const std::string& op, std::int64_t opset, const std::string& attribute) {
    return refusal(model_bytes(one_node(op, opset, {{2, 2}}, {attribute})));
  };
  EXPECT_NE(said("Clip", 13, float_attribute("max", 6)).find("Clip has no attribute \"max\" at opset 13 (it has none)"), std::string::npos);
  EXPECT_NE(said("LeakyRelu", 13, float_attribute("slope", 1)).find("(it has alpha)"), std::string::npos);
  EXPECT_NE(said("Pad", 11, float_attribute("value", 1)).find("\"value\""), std::string::npos);
  EXPECT_NE(said("SpaceToDepth", 13, text_attribute("mode", "CRD")).find("(it has blocksize)"), std::string::npos);
  import_one("Relu", 13, {{2}}, {int_attribute("__exporter", 1)});
  import_one("Relu", 7, {{2}}, {ints_attribute("consumed_inputs", {0})});  // a hint, whatever the opset
}

TEST(Rules, DropoutIsOff) {
  const Graph seven = import_one("Dropout", 7, {{2}}, {float_attribute("ratio", 0.25f)});
  expect_close(constant_operand(seven, seven.nodes[0], 1), f32({}, {0.25f}));
  OnnxModel on = one_node("Dropout", 13, {{2}}, {});
  on.graph.nodes[0].inputs = {"x0", "ratio", "mode"};
  on.graph.initializers = {float_tensor("ratio", {}, {0.5f}), raw_tensor("mode", 9, {}, std::string(1, '\1'))};
  const Graph off = import_text(model_bytes(on));
  EXPECT_EQ(off.nodes[0].inputs.size(), 2u);
  EXPECT_TRUE(has_note(off, "turned off"));
  ImportOptions strict;
  strict.as_written = true;
  EXPECT_NE(refusal(model_bytes(on), {}, strict).find("random"), std::string::npos);
}

TEST(Rules, ConstantsOfEveryKind) {
  const auto value_of = [](const std::string& attribute) {
    OnnxModel model = one_node("Constant", 13, {}, {attribute});
    const Graph graph = import_text(model_bytes(model));
    EXPECT_TRUE(graph.nodes.empty());
    return graph.value(graph.outputs[0]).constant;
  };
  expect_close(value_of(float_attribute("value_float", 2.5f)), f32({}, {2.5f}));
  expect_close(value_of(floats_attribute("value_floats", {1, 2})), f32({2}, {1, 2}));
  expect_close(value_of(int_attribute("value_int", -3)), i64({}, {-3}));
  expect_close(value_of(ints_attribute("value_ints", {1, -1})), i64({2}, {1, -1}));
  expect_close(value_of(tensor_attribute("value", float_tensor("", {1}, {4}))), f32({1}, {4}));
  EXPECT_NE(refusal(model_bytes(one_node("Constant", 13, {}, {text_attribute("value_string", "x")}))).find("strings"), std::string::npos);
}

TEST(Rules, IdentityOfAConstantIsItsOwnConstant) {
  OnnxModel model = one_node("Identity", 13, {}, {});
  model.graph.nodes[0].inputs = {"w"};
  model.graph.initializers = {float_tensor("w", {2}, {1, 2})};
  const Graph graph = import_text(model_bytes(model));
  EXPECT_TRUE(graph.nodes.empty());
  EXPECT_EQ(graph.value(graph.outputs[0]).name, "y0");
}

TEST(Rules, CastsToHalfKeepTheirRounding) {
  const Graph graph = import_one("Cast", 13, {{2}}, {int_attribute("to", 10)});
  ASSERT_EQ(operators_of(graph), "Cast Cast");
  EXPECT_EQ(graph.nodes[0].attributes.integer("to"), 10);
  EXPECT_EQ(graph.nodes[1].attributes.integer("to"), 1);
  EXPECT_EQ(import_one("Cast", 1, {{2}}, {text_attribute("to", "INT64")}).nodes[0].attributes.integer("to"), 7);
}

TEST(Rules, GroupNormalization18RepeatsItsParameters) {
  const Graph graph = import_one("GroupNormalization", 18, {{1, 4, 2}, {2}, {2}}, {int_attribute("num_groups", 2)});
  EXPECT_EQ(graph.nodes.back().op, "GroupNormalization");
  EXPECT_EQ(operators_of(import_one("GroupNormalization", 21, {{1, 4, 2}, {4}, {4}}, {int_attribute("num_groups", 2)})), "GroupNormalization");
}

}  // namespace
}  // namespace tandem::test
