// Keras' algorithm (Functional.layers): depth-first from the outputs, inputs in argument order; a layer's first visit numbers it. Then, from the
// outputs on, depth = 1 + the largest depth of its consumers; layers are sorted by depth, deepest first, ties by number.
#include "models/layer_order.h"

#include <algorithm>

namespace tandem::models {
namespace {

using Unit = std::size_t;
constexpr Unit kNone = static_cast<Unit>(-1);

// Nodes that change how data is written down but are no layer of Keras.
bool is_transparent(const Node& node) {
  for (const char* op : {"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Identity", "Cast"}) {
    if (node.op == op) return true;
  }
  return false;
}

// A unit is a node, or the nodes of one layer that feed each other.
struct Units {
  std::vector<Unit> of_node;                 // kNone: transparent
  std::vector<std::vector<ValueId>> inputs;  // in argument order
  std::vector<std::string> names;            // layer, "" for nodes without parameters
};

// The unit that makes a value, seen through transparent nodes.
Unit maker(const Graph& graph, const std::vector<std::int32_t>& makers, const Units& units, ValueId value) {
  while (value != kNoValue && makers[static_cast<std::size_t>(value)] >= 0) {
    const auto node = static_cast<std::size_t>(makers[static_cast<std::size_t>(value)]);
    if (units.of_node[node] != kNone) return units.of_node[node];
    value = graph.nodes[node].inputs.empty() ? kNoValue : graph.nodes[node].inputs[0];
  }
  return kNone;
}

Units make_units(const Graph& graph, const std::vector<std::int32_t>& makers, const std::map<std::size_t, std::string>& layer_of) {
  Units units;
  units.of_node.assign(graph.nodes.size(), kNone);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto layer = layer_of.find(n);
    if (layer == layer_of.end() && is_transparent(graph.nodes[n])) continue;
    Unit unit = kNone;
    if (layer != layer_of.end()) {
      for (const ValueId in : graph.nodes[n].inputs) {
        const Unit before = maker(graph, makers, units, in);
        if (before != kNone && units.names[before] == layer->second) unit = before;
      }
    }
    if (unit == kNone) {
      unit = units.names.size();
      units.names.push_back(layer == layer_of.end() ? "" : layer->second);
      units.inputs.emplace_back();
    }
    units.of_node[n] = unit;
    for (const ValueId in : graph.nodes[n].inputs) units.inputs[unit].push_back(in);
  }
  return units;
}

}  // namespace

std::vector<std::string> layer_order(const Graph& graph, const std::map<std::size_t, std::string>& layer_of) {
  const auto makers = producers(graph);
  const Units units = make_units(graph, makers, layer_of);
  std::map<std::string, std::size_t> first_visit;
  std::vector<Unit> finished;
  std::vector<bool> visited(units.names.size(), false);
  struct Step {
    Unit unit;
    std::size_t next = 0;
  };
  std::vector<Step> stack;
  const auto enter = [&](Unit u) {
    if (u == kNone || visited[u]) return;
    visited[u] = true;
    if (!units.names[u].empty()) first_visit.emplace(units.names[u], first_visit.size());
    stack.push_back({u});
  };
  for (const ValueId output : graph.outputs) {
    enter(maker(graph, makers, units, output));
    while (!stack.empty()) {
      Step& step = stack.back();
      if (step.next == units.inputs[step.unit].size()) {
        finished.push_back(step.unit);
        stack.pop_back();
      } else {
        enter(maker(graph, makers, units, units.inputs[step.unit][step.next++]));
      }
    }
  }
  std::vector<std::size_t> depth(units.names.size(), 0);
  std::map<std::string, std::size_t> layer_depth;
  for (std::size_t i = finished.size(); i-- > 0;) {
    const Unit u = finished[i];
    if (!units.names[u].empty()) depth[u] = layer_depth[units.names[u]] = std::max(depth[u], layer_depth[units.names[u]]);
    for (const ValueId in : units.inputs[u]) {
      const Unit before = maker(graph, makers, units, in);
      if (before != kNone && before != u) depth[before] = std::max(depth[before], depth[u] + 1);
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, number] : first_visit) names.push_back(name);
  std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    if (layer_depth[a] != layer_depth[b]) return layer_depth[a] > layer_depth[b];
    return first_visit[a] < first_visit[b];
  });
  for (const std::string& name : units.names) {
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace tandem::models
