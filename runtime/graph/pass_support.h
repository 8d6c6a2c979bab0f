// What the passes share. Internal to runtime/graph.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace tandem {

// Who makes and who reads each value; rebuilt by a pass after it changed nodes.
struct Links {
  explicit Links(const Graph& graph) : producer(producers(graph)), uses(use_counts(graph)) {}
  std::vector<std::int32_t> producer, uses;
  // The node that makes the value when it has no other reader than the one that asks; null otherwise.
  Node* only_for_me(Graph& graph, ValueId id) const {
    if (id == kNoValue || uses[static_cast<std::size_t>(id)] != 1 || producer[static_cast<std::size_t>(id)] < 0) return nullptr;
    return &graph.nodes[static_cast<std::size_t>(producer[static_cast<std::size_t>(id)])];
  }
};

inline ValueId operand(const Node& node, std::size_t i) { return i < node.inputs.size() ? node.inputs[i] : kNoValue; }
inline const Tensor* constant_operand(const Graph& graph, const Node& node, std::size_t i) {
  const ValueId id = operand(node, i);
  return id != kNoValue && graph.value(id).known() ? &graph.value(id).constant : nullptr;
}
// A name that no value of the graph has.
inline std::string fresh_name(const Graph& graph, const std::string& base) { return base + "#" + std::to_string(graph.values.size()); }

// The one value of a scalar-like float constant (any rank, one element).
std::optional<float> scalar_constant(const Graph& graph, const Node& node, std::size_t i);

// Drops nodes whose op was emptied, and dead ones.
void sweep(Graph& graph);

}  // namespace tandem
