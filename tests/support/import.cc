#include "tests/support/import.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/graph/infer.h"
#include "runtime/plan/evaluate.h"

namespace tandem::test {

std::string refusal(const std::string& model, const std::filesystem::path& folder, const ImportOptions& options) {
  try {
    import_text(model, folder, options);
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "the model was imported";
  return {};
}

std::string operators_of(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) text += (text.empty() ? "" : " ") + node.op;
  return text;
}

const Tensor& constant_operand(const Graph& graph, const Node& node, std::size_t operand) {
  const ValueId id = node.inputs.at(operand);
  EXPECT_NE(id, kNoValue);
  EXPECT_TRUE(graph.value(id).known());
  return graph.value(id).constant;
}

std::vector<Tensor> run_graph(Graph graph, const std::vector<Tensor>& inputs) {
  InputBinding binding;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    binding.shapes.push_back(inputs[i].shape());
    binding.values[i] = inputs[i];  // everything known: infer() folds the whole graph
  }
  infer(graph, binding);
  for (const Node& node : graph.nodes) {  // what folding leaves out
    const std::vector<Tensor> results = evaluate(graph, node);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNoValue) graph.value(node.outputs[i]).constant = results[i];
    }
  }
  std::vector<Tensor> outputs;
  for (const ValueId id : graph.outputs) outputs.push_back(graph.value(id).constant);
  return outputs;
}

}  // namespace tandem::test
