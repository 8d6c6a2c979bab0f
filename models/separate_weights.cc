#include "models/separate_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "models/weight_operands.h"

namespace tandem::models {
namespace {

// Operand of a node.
struct Use {
  std::size_t node = 0, operand = 0;
};

// Two roles in one node (gamma and variance): no layer is so, the exporter merged them.
bool plays_two_roles(const std::vector<Use>& uses) {
  for (std::size_t i = 1; i < uses.size(); ++i) {
    if (uses[i].node == uses[i - 1].node) return true;
  }
  return false;
}

std::string free_name(const std::set<std::string>& taken, const std::string& name) {
  for (int n = 2;; ++n) {
    std::string tried = fmt::format("{}_{}", name, n);
    if (!taken.contains(tried)) return tried;
  }
}

}  // namespace

std::vector<std::string> separate_weights(Graph& graph) {
  // Layers are told apart by their weights as the file has them, before any is replaced.
  const Graph before = graph;
  const WeightOperands operands(before);
  std::map<ValueId, std::vector<Use>> uses;
  for (std::size_t n = 0; n < before.nodes.size(); ++n) {
    const Node& node = before.nodes[n];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (operands.role(node, i) != WeightRole::kNone) uses[node.inputs[i]].push_back({n, i});
    }
  }
  std::set<std::string> taken;
  for (const Value& v : graph.values) taken.insert(v.name);
  std::vector<std::string> copied;
  for (const auto& [id, places] : uses) {
    if (places.size() < 2) continue;
    const bool merged = plays_two_roles(places);
    using Owner = std::tuple<std::size_t, std::string, std::size_t, std::vector<ValueId>>;  // node where merged; operator, operand, weights
    std::map<Owner, ValueId> copies;
    for (const Use& use : places) {
      const Node& node = before.nodes[use.node];
      const Owner owner = merged ? Owner{use.node, {}, use.operand, {}} : Owner{0, node.op, use.operand, operands.layer_weights(node)};
      const auto [at, is_new] = copies.emplace(owner, id);
      if (is_new && copies.size() > 1) {
        const Value original = graph.value(id);  // adding moves the values
        const std::string name = free_name(taken, original.name);
        taken.insert(name);
        at->second = graph.add_constant(name, original.constant);
      }
      graph.nodes[use.node].inputs[use.operand] = at->second;
    }
    if (copies.size() > 1) copied.push_back(graph.value(id).name);
  }
  return copied;
}

}  // namespace tandem::models
