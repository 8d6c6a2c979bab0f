// Faults of other importers whose right answer is a refusal or a spelling; those with numbers lie in tests/data/cases.
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/support/import.h"
#include "tests/support/node_test.h"
#include "tests/support/onnx_builder.h"

namespace tandem::test {
namespace {

// The message with which importing or running a model is refused.
std::string refused(const OnnxModel& model, const std::vector<Tensor>& inputs) {
  try {
    run_graph(import_text(model_bytes(model)), inputs);
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "not refused";
  return {};
}

OnnxModel with_constants(OnnxModel model, const std::vector<std::pair<Ints, Ints>>& constants) {
  model.graph.nodes[0].name = "the_node";
  for (std::size_t i = 0; i < constants.size(); ++i) {
    model.graph.nodes[0].inputs.push_back("c" + std::to_string(i));
    model.graph.initializers.push_back(int64_tensor("c" + std::to_string(i), constants[i].first, constants[i].second));
  }
  return model;
}

TEST(KnownFaults, ReflectionBeyondTheAxisNamesTheNode) {
  const OnnxModel model = with_constants(one_node("Pad", 13, {{2}}, {text_attribute("mode", "reflect")}), {{{2}, {2, 0}}});
  EXPECT_NE(refused(model, {f32({2}, {1, 2})}).find("\"the_node\" (Pad)"), std::string::npos);
}

// Chunks of ceil(5 / 4) = 2 would leave the last one -1.
TEST(KnownFaults, ASplitWhoseLastPartIsNegative) {
  OnnxModel model = with_constants(one_node("Split", 18, {{5}}, {int_attribute("num_outputs", 4)}, 4), {});
  EXPECT_NE(refused(model, {f32({5}, {1, 2, 3, 4, 5})}).find("\"the_node\" (Split)"), std::string::npos);
}

TEST(KnownFaults, ReshapeWithAllowzeroHasNoRestBesideAZero) {
  const OnnxModel model = with_constants(one_node("Reshape", 14, {{0, 10}}, {int_attribute("allowzero", 1)}), {{{2}, {0, -1}}});
  EXPECT_NE(refused(model, {Tensor(DType::kF32, {0, 10})}).find("\"the_node\" (Reshape)"), std::string::npos);
}

// Absent operands are an empty name, or a tensor without elements.
TEST(KnownFaults, ResizeWithEachSpellingOfAbsent) {
  for (const bool named : {false, true}) {
    OnnxModel model = one_node("Resize", 13, {{1, 1, 1, 2}}, {});
    model.graph.nodes[0].inputs = {"x0", named ? "roi" : "", named ? "scales" : "", "sizes"};
    model.graph.initializers = {float_tensor("roi", {0}, {}), float_tensor("scales", {0}, {}), int64_tensor("sizes", {4}, {1, 1, 1, 4})};
    expect_close(run_graph(import_text(model_bytes(model)), {f32({1, 1, 1, 2}, {1, 2})})[0], f32({1, 1, 1, 4}, {1, 1, 2, 2}));
  }
}

// Every message that holds a name of the file, with names of every length.
TEST(KnownFaults, NamesOfAnyLengthInEveryMessage) {
  for (const std::size_t length : {0u, 1u, 4095u, 4096u, 65536u}) {
    const std::string name(length, '\x01');
    std::vector<OnnxModel> models(9, one_node("Add", 17, {{2}, {2}}, {}));
    models[0].graph.nodes[0].op = name;
    models[1].graph.nodes[0].domain = name + "d";
    models[2].graph.nodes[0].inputs[0] = name + "i";
    models[3].graph.nodes[0].attributes = {int_attribute(name, 1), int_attribute(name, 1)};
    models[4].graph.initializers = {raw_tensor(name, 1, {2}, "123"), raw_tensor(name, 1, {2}, "123")};
    models[5].graph.initializers = {external_tensor("w", 1, {2}, {{"location", name + "l"}})};
    models[5].graph.nodes[0].inputs[1] = "w";
    models[6].graph.initializers = {external_tensor("w", 1, {2}, {{name, "v"}})};
    models[6].graph.nodes[0].inputs[1] = "w";
    models[7].graph.outputs = {value_bytes(name + "o", 1, {2})};
    models[8].functions = {{.name = name, .domain = "d", .inputs = {"a"}, .outputs = {"b"}, .attributes = {}, .nodes = {}},
                           {.name = name, .domain = "d", .inputs = {"a"}, .outputs = {"b"}, .attributes = {}, .nodes = {}}};
    for (std::size_t i = 0; i < models.size(); ++i) {
      SCOPED_TRACE(std::to_string(i) + ", " + std::to_string(length) + " bytes");
      const std::string message = refused(models[i], {f32({2}, {1, 2}), f32({2}, {3, 4})});
      EXPECT_LT(message.size(), 4000u);
      EXPECT_GT(message.size(), 20u);
    }
  }
}

}  // namespace
}  // namespace tandem::test
