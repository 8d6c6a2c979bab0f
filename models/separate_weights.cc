#include "models/separate_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace tandem::models {
namespace {

// Operand of a node.
struct Use {
  std::size_t node = 0, operand = 0;
};

bool holds_weights(const std::string& op) {
  for (const char* known : {"Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization", "LayerNormalization", "GroupNormalization",
                            "InstanceNormalization", "RMSNormalization", "PRelu"}) {
    if (op == known) return true;
  }
  return false;
}

// Operands behind the data: a layer's weights.
std::vector<ValueId> weights_of(const Node& node) {
  return {node.inputs.begin() + std::min<std::ptrdiff_t>(1, std::ssize(node.inputs)), node.inputs.end()};
}

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
  std::map<ValueId, std::vector<Use>> uses;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (!holds_weights(node.op)) continue;
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id != kNoValue && graph.value(id).known() && graph.value(id).constant.dtype() == DType::kF32) uses[id].push_back({n, i});
    }
  }
  std::set<std::string> taken;
  for (const Value& v : graph.values) taken.insert(v.name);
  // Layers are told apart by their weights as the file has them, before any is replaced.
  const std::vector<Node> before = graph.nodes;
  std::vector<std::string> copied;
  for (const auto& [id, places] : uses) {
    if (places.size() < 2) continue;
    const bool merged = plays_two_roles(places);
    using Owner = std::tuple<std::size_t, std::string, std::size_t, std::vector<ValueId>>;  // node where merged; operator, operand, weights
    std::map<Owner, ValueId> copies;
    for (const Use& use : places) {
      const Node& node = before[use.node];
      const Owner owner = merged ? Owner{use.node, {}, use.operand, {}} : Owner{0, node.op, use.operand, weights_of(node)};
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
