#include "runtime/graph/network_end.h"

#include <algorithm>
#include <array>

namespace tandem {
namespace {

// What follows a softmax without changing which number belongs to which class.
bool keeps_scores(const Node& node) {
  constexpr std::array kKeeps = {"Cast",           "Clip",    "DequantizeLinear", "Dropout",   "Flatten",  "Identity",
                                 "QuantizeLinear", "Reshape", "Squeeze",          "Transpose", "Unsqueeze"};
  return !node.inputs.empty() && std::find(kKeeps.begin(), kKeeps.end(), node.op) != kKeeps.end();
}

// exp(x) / sum(exp(x)), as exporters without a Softmax write it.
bool is_division_by_sum(const Graph& graph, const Node& node) {
  if (node.op != "Div" || node.inputs.size() != 2) return false;
  const Node *above = producer_of(graph, node.inputs[0]), *below = producer_of(graph, node.inputs[1]);
  return above && below && above->op == "Exp" && below->op == "ReduceSum" && below->inputs[0] == node.inputs[0];
}

}  // namespace

const Node* producer_of(const Graph& graph, ValueId id) {
  const auto made_by = producers(graph)[static_cast<std::size_t>(id)];
  return made_by < 0 ? nullptr : &graph.nodes[static_cast<std::size_t>(made_by)];
}

NetworkEnd network_end(const Graph& graph) {
  using Activation = NetworkEnd::Activation;
  const Node* last = producer_of(graph, graph.outputs[0]);
  while (last && keeps_scores(*last)) last = producer_of(graph, last->inputs[0]);
  const auto index = last ? static_cast<std::int32_t>(last - graph.nodes.data()) : -1;
  if (last && last->op == "Softmax") return {Activation::kSoftmax, last->inputs[0], index};
  if (last && last->op == "Sigmoid") return {Activation::kSigmoid, last->inputs[0], index};
  if (last && is_division_by_sum(graph, *last)) return {Activation::kSoftmax, producer_of(graph, last->inputs[0])->inputs[0], index};
  return {Activation::kNone, graph.outputs[0], -1};
}

}  // namespace tandem
