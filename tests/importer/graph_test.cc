// Names, order, scopes, functions, types and versions: what a graph is and what is refused.
#include <gtest/gtest.h>

#include <chrono>

#include "runtime/base/error.h"
#include "tests/support/import.h"
#include "tests/support/node_test.h"
#include "tests/support/onnx_builder.h"

namespace tandem::test {
namespace {

bool says(const std::string& model, const std::string& what) {
  const std::string message = refusal(model);
  if (message.find(what) != std::string::npos) return true;
  ADD_FAILURE() << "expected \"" << what << "\" in: " << message;
  return false;
}

OnnxModel chain(std::vector<OnnxNode> nodes, std::vector<std::string> initializers = {}) {
  OnnxModel model;
  model.graph = {.nodes = std::move(nodes),
                 .inputs = {value_bytes("x", 1, {2})},
                 .outputs = {value_bytes("y", 1, {2})},
                 .initializers = std::move(initializers)};
  return model;
}

Tensor run_on(const OnnxModel& model, std::vector<float> x) {
  return run_graph(import_text(model_bytes(model)), {f32({static_cast<std::int64_t>(x.size())}, x)})[0];
}

TEST(Graph, KeepsDeclarationsOriginAndMetadata) {
  OnnxModel model = one_node("Relu", 13, {{-1, 3}}, {});
  model.metadata = {{"tandem.labels", "[\"a\"]"}};
  model.graph.inputs[0] = value_bytes("x0", 10, {-1, 3});
  const Graph graph = import_text(model_bytes(model));
  EXPECT_EQ(graph.declared_inputs[0].dtype, DType::kF16);
  EXPECT_EQ(graph.declared_inputs[0].shape, (Shape{-1, 3}));
  EXPECT_EQ(graph.value(graph.inputs[0]).dtype, DType::kF32);
  EXPECT_EQ(graph.origin.producer, "test");
  EXPECT_EQ(graph.origin.opset, 13);
  EXPECT_EQ(graph.metadata.at("tandem.labels"), "[\"a\"]");
}

TEST(Graph, SortsNodesAndAllowsAnyNodeName) {
  const OnnxModel model = chain({{.op = "Add", .inputs = {"a", "b"}, .outputs = {"y"}, .name = "same"},
                                 {.op = "Add", .inputs = {"x", "x"}, .outputs = {"a"}, .name = "same"},
                                 {.op = "Add", .inputs = {"a", "x"}, .outputs = {"b"}, .name = "y"}});
  expect_close(run_on(model, {1, 2}), f32({2}, {5, 10}));
}

TEST(Graph, InitializersMayBeInputs) {
  OnnxModel model =
      chain({{.op = "Add", .inputs = {"x", "w"}, .outputs = {"y"}}}, {float_tensor("w", {2}, {10, 20}), float_tensor("unused", {1}, {0})});
  model.graph.inputs.push_back(value_bytes("w", 1, {2}));
  model.ir = 3;
  const Graph graph = import_text(model_bytes(model));
  EXPECT_EQ(graph.inputs.size(), 1u);
  expect_close(run_on(model, {1, 2}), f32({2}, {11, 22}));
}

TEST(Graph, InitializersOfNewFilesAreNoInputs) {
  const OnnxModel model =
      chain({{.op = "Add", .inputs = {"x", "w"}, .outputs = {"y"}}}, {float_tensor("w", {2}, {10, 20}), float_tensor("unused", {1}, {0})});
  EXPECT_EQ(import_text(model_bytes(model)).inputs.size(), 1u);
  expect_close(run_on(model, {1, 2}), f32({2}, {11, 22}));
}

TEST(Graph, UnnamedNodesAreCalledByTheirOutput) {
  // Two nodes without a name, and one whose name is another tensor's.
  const OnnxModel fine = chain({{.op = "Neg", .inputs = {"x"}, .outputs = {"a"}}, {.op = "Relu", .inputs = {"a"}, .outputs = {"y"}}});
  expect_close(run_on(fine, {-1, 2}), f32({2}, {1, 0}));
  EXPECT_TRUE(says(model_bytes(chain({{.op = "Neg", .inputs = {"x"}, .outputs = {"a"}}, {.op = "Relu", .inputs = {"none"}, .outputs = {"y"}}})),
                   "node of \"y\" (Relu)"));
  EXPECT_TRUE(
      says(model_bytes(chain({{.op = "Neg", .inputs = {"x"}, .outputs = {"a"}}, {.op = "Relu", .inputs = {"none"}, .outputs = {"y"}, .name = "a"}})),
           "node \"a\" (Relu)"));
}

// What one file can say in two ways and another runtime answers differently.
TEST(Graph, NotesASliceThatOtherRuntimesReverse) {
  const auto slice = [](std::int64_t end) {
    return chain({{.op = "Slice", .inputs = {"x", "s", "e", "a", "t"}, .outputs = {"y"}}},
                 {int64_tensor("s", {1}, {-1}), int64_tensor("e", {1}, {end}), int64_tensor("a", {1}, {0}), int64_tensor("t", {1}, {-1})});
  };
  const auto notes = [&](std::int64_t end) {
    std::string all;
    for (const std::string& line : import_text(model_bytes(slice(end))).origin.notes) all += line;
    return all;
  };
  EXPECT_EQ(run_on(slice(INT64_MAX), {1, 2}).size(), 0);
  EXPECT_NE(notes(INT64_MAX).find("ONNX Runtime reverses"), std::string::npos) << notes(INT64_MAX);
  expect_close(run_on(slice(INT64_MIN), {1, 2}), f32({2}, {2, 1}));
  EXPECT_EQ(notes(INT64_MIN).find("reverses"), std::string::npos);
}

TEST(Graph, OutputsMayBeInputsAndInitializers) {
  OnnxModel model = chain({}, {float_tensor("w", {1}, {7})});
  model.graph.outputs = {value_bytes("x", 1, {2}), value_bytes("w", 1, {1})};
  const Graph graph = import_text(model_bytes(model));
  EXPECT_EQ(graph.outputs[0], graph.inputs[0]);
  EXPECT_TRUE(graph.value(graph.outputs[1]).known());
}

TEST(Graph, RefusesContradictions) {
  EXPECT_TRUE(says(model_bytes(chain({{.op = "Relu", .inputs = {"x"}, .outputs = {"y"}}, {.op = "Neg", .inputs = {"x"}, .outputs = {"y"}}})),
                   "\"y\" is made twice"));
  EXPECT_TRUE(says(model_bytes(chain({{.op = "Relu", .inputs = {"x"}, .outputs = {"x"}}})), "\"x\" is made twice"));
  EXPECT_TRUE(says(model_bytes(chain({{.op = "Relu", .inputs = {"z"}, .outputs = {"y"}, .name = "n1"}})), "reads \"z\""));
  EXPECT_TRUE(
      says(model_bytes(chain({{.op = "Add", .inputs = {"x", "y"}, .outputs = {"a"}}, {.op = "Relu", .inputs = {"a"}, .outputs = {"y"}}})), "cycle"));
  EXPECT_TRUE(says(model_bytes(chain({})), "graph output \"y\""));
  EXPECT_TRUE(
      says(model_bytes(chain({{.op = "Relu", .inputs = {"x"}, .outputs = {"y"}}}, {float_tensor("w", {1}, {1}), float_tensor("w", {1}, {1})})),
           "initializer \"w\" is defined twice"));
  EXPECT_TRUE(says(
      model_bytes(chain({{.op = "Flatten", .inputs = {"x"}, .outputs = {"y"}, .attributes = {int_attribute("axis", 1), int_attribute("axis", 0)}}})),
      "attribute \"axis\" stands twice"));
  EXPECT_TRUE(says("", "empty"));
  EXPECT_TRUE(says("this is no model", "no ONNX model"));
  EXPECT_TRUE(says("\x89HDF\r\n\x1a\n", "the file is HDF5"));
  EXPECT_TRUE(says(std::string("PK\x03\x04", 4), "zip archive"));
}

TEST(Graph, RefusesVersionsByNumber) {
  OnnxModel model = one_node("Relu", 17, {{2}}, {});
  for (const auto& [ir, opset, what] :
       std::vector<std::tuple<int, int, const char*>>{{2, 17, "IR version 2"}, {14, 17, "IR version 14"}, {8, 26, "opset 26"}, {8, 0, "opset"}}) {
    model.ir = ir;
    model.opset = opset;
    EXPECT_TRUE(says(model_bytes(model), what));
  }
}

TEST(Graph, NamesEveryUnknownOperator) {
  OnnxModel model = chain({{.op = "Erfc", .inputs = {"x"}, .outputs = {"a"}, .name = "gelu/Erfc"},
                           {.op = "BiasGelu", .inputs = {"a"}, .outputs = {"b"}, .domain = "com.microsoft"},
                           {.op = "LayerNormalization", .inputs = {"b", "b"}, .outputs = {"y"}}});
  model.opset = 13;
  const std::string message = refusal(model_bytes(model));
  for (const char* part : {"3 operators", "operator Erfc at opset 13", "\"gelu/Erfc\"", "operator BiasGelu of domain \"com.microsoft\"",
                           "since opset 17", "export the model"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
}

TEST(Graph, NamesOperatorsOfAModelWithoutTheStandardDomain) {
  OnnxModel model = chain({{.op = "Adam", .inputs = {"x", "x"}, .outputs = {"y"}, .domain = "ai.onnx.preview.training"}});
  model.opset = 0;
  model.domains = {{"ai.onnx.preview.training", 1}};
  EXPECT_TRUE(says(model_bytes(model), "operator Adam of domain \"ai.onnx.preview.training\""));
  model = chain({{.op = "Relu", .inputs = {"x"}, .outputs = {"y"}}});
  model.opset = 0;
  EXPECT_TRUE(says(model_bytes(model), "does not say which opset"));
}

TEST(Graph, TheStandardDomainHasTwoSpellings) {
  OnnxModel model = chain({{.op = "Add", .inputs = {"x", "x"}, .outputs = {"y"}, .domain = "ai.onnx"}});
  model.domains = {{"ai.onnx.ml", 2}};
  expect_close(run_on(model, {1, 2}), f32({2}, {2, 4}));
}

TEST(Graph, RefusesMixedTypesOfHalfPrecisionFiles) {
  OnnxModel model = chain({{.op = "Add", .inputs = {"x", "w"}, .outputs = {"y"}, .name = "n"}}, {float_tensor("w", {2}, {1, 2})});
  model.graph.inputs = {value_bytes("x", 16, {2})};
  EXPECT_TRUE(says(model_bytes(model), "\"x\" is bfloat16, \"w\" is float32"));
}

std::string branch(const std::string& op, const Names& inputs, const std::string& output) {
  return graph_bytes({.nodes = {{.op = op, .inputs = inputs, .outputs = {output}}}, .inputs = {}, .outputs = {value_bytes(output, 1, {2})}});
}

OnnxModel conditional(const std::string& then_branch, const std::string& else_branch) {
  OnnxModel model = chain({{.op = "Add", .inputs = {"x", "x"}, .outputs = {"d"}},
                           {.op = "If",
                            .inputs = {"c"},
                            .outputs = {"y"},
                            .attributes = {graph_attribute("then_branch", then_branch), graph_attribute("else_branch", else_branch)}}},
                          {float_tensor("w", {2}, {3, 5})});
  model.graph.inputs.push_back(value_bytes("c", 9, {}));
  return model;
}

TEST(Graph, BranchesSeeOuterValues) {
  const Graph graph = import_text(model_bytes(conditional(branch("Add", {"x", "w"}, "t"), branch("Mul", {"d", "x"}, "e"))));
  const Node& node = graph.nodes.back();
  ASSERT_EQ(node.op, "If");
  for (const char* name : {"then_branch", "else_branch"}) EXPECT_EQ(node.attributes.graph(name)->inputs.size() + 1, node.inputs.size());
  expect_close(run_graph(graph, {f32({2}, {1, 2}), Tensor::scalar(true)})[0], f32({2}, {4, 7}));
  expect_close(run_graph(graph, {f32({2}, {1, 2}), Tensor::scalar(false)})[0], f32({2}, {2, 8}));
}

TEST(Graph, RefusesShadowingAndBranchesThatDiffer) {
  EXPECT_TRUE(says(model_bytes(conditional(branch("Relu", {"x"}, "d"), branch("Relu", {"x"}, "e"))), "\"d\" of a branch"));
  EXPECT_TRUE(says(model_bytes(conditional(branch("Relu", {"nothing"}, "t"), branch("Relu", {"x"}, "e"))), "reads \"nothing\""));
}

TEST(Functions, AreInlinedWithTheirAttributes) {
  OnnxModel model =
      chain({{.op = "Scaled", .inputs = {"x"}, .outputs = {"m"}, .attributes = {int_attribute("to", 1)}, .name = "first", .domain = "local"},
             {.op = "Scaled", .inputs = {"m"}, .outputs = {"y"}, .attributes = {int_attribute("to", 1)}, .domain = "local"}});
  model.functions = {{.name = "Scaled",
                      .domain = "local",
                      .inputs = {"a"},
                      .outputs = {"b"},
                      .attributes = {"to"},
                      .nodes = {{.op = "Add", .inputs = {"a", "a"}, .outputs = {"s"}},
                                {.op = "Cast", .inputs = {"s"}, .outputs = {"b"}, .attributes = {reference_attribute("to", "to")}}}}};
  const Graph graph = import_text(model_bytes(model));
  EXPECT_EQ(operators_of(graph), "Add Cast Add Cast");
  EXPECT_EQ(graph.nodes[1].attributes.integer("to"), 1);
}

TEST(Functions, InputsMayBeLeftOut) {
  OnnxModel model = chain({{.op = "Bound", .inputs = {"x", "", "hi"}, .outputs = {"y"}, .domain = "local"}}, {float_tensor("hi", {}, {6})});
  model.functions = {{.name = "Bound",
                      .domain = "local",
                      .inputs = {"a", "lo", "hi"},
                      .outputs = {"b"},
                      .attributes = {},
                      .nodes = {{.op = "Clip", .inputs = {"a", "lo", "hi"}, .outputs = {"b"}}}}};
  const Graph graph = import_text(model_bytes(model));
  ASSERT_EQ(operators_of(graph), "Clip");
  EXPECT_EQ(graph.nodes[0].inputs[1], kNoValue);
}

TEST(Functions, RefusesRecursionAndExplosion) {
  OnnxModel model = chain({{.op = "F0", .inputs = {"x"}, .outputs = {"y"}, .domain = "local"}});
  model.functions = {calling_twice("F0", "F0")};
  EXPECT_TRUE(says(model_bytes(model), "\"F0\" calls itself"));
  model.functions = {calling_twice("F0", "F1"), calling_twice("F1", "F0")};
  EXPECT_TRUE(says(model_bytes(model), "calls itself"));
  OnnxFunction through_if = calling_twice("F0", "Relu", "");
  through_if.nodes[0] = {
      .op = "If",
      .inputs = {"a"},
      .outputs = {"m"},
      .attributes = {graph_attribute("then_branch", graph_bytes({.nodes = {{.op = "F0", .inputs = {"a"}, .outputs = {"q"}, .domain = "local"}},
                                                                 .inputs = {},
                                                                 .outputs = {value_bytes("q", 1, {})}}))}};
  model.functions = {through_if};
  EXPECT_TRUE(says(model_bytes(model), "\"F0\" calls itself"));
  model.functions.clear();
  for (int i = 0; i < 30; ++i) model.functions.push_back(calling_twice("F" + std::to_string(i), "F" + std::to_string(i + 1)));
  model.functions.push_back(calling_twice("F30", "Relu", ""));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(says(model_bytes(model), "once its functions are inlined"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

}  // namespace
}  // namespace tandem::test
