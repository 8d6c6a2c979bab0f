#include "models/own_rescaling.h"

#include <algorithm>
#include <cmath>

namespace tandem::models {
namespace {

constexpr double kMostScale = 1.0 / 32;

// The largest factor of a constant operand of Mul or Div; 0 where it is none.
double factor_of(const Graph& graph, const Node& node) {
  if ((node.op != "Mul" && node.op != "Div") || node.inputs.size() != 2) return 0;
  const std::size_t operand = graph.value(node.inputs[1]).known() ? 1 : 0;
  if (!graph.value(node.inputs[operand]).known() || (node.op == "Div" && operand == 0)) return 0;
  double most = 0;
  for (const double v : graph.value(node.inputs[operand]).constant.to_doubles()) most = std::max(most, std::abs(node.op == "Mul" ? v : 1 / v));
  return std::isfinite(most) ? most : 0;
}

bool moves_only(const Graph& graph, const Node& node) {
  if (node.op == "Transpose" || node.op == "Cast" || node.op == "Identity") return true;
  const auto constant = [&](ValueId id) { return id != kNoValue && graph.value(id).known(); };
  return (node.op == "Add" || node.op == "Sub") && node.inputs.size() == 2 && constant(node.inputs[0]) != constant(node.inputs[1]);
}

}  // namespace

std::string own_rescaling(const Graph& graph) {
  if (graph.inputs.empty()) return "";
  ValueId at = graph.inputs[0];
  double scale = 1;
  std::string name;
  for (;;) {
    const Node* next = nullptr;
    for (const Node& node : graph.nodes) {
      if (std::find(node.inputs.begin(), node.inputs.end(), at) == node.inputs.end()) continue;
      if (next) return "";  // what several take is not scaled for all
      next = &node;
    }
    const double factor = next ? factor_of(graph, *next) : 0;
    if (factor > 0) {
      scale *= factor;
      name = next->name;
    } else if (!next || !moves_only(graph, *next)) {
      break;
    }
    at = next->outputs[0];
  }
  return scale <= kMostScale ? name : "";
}

}  // namespace tandem::models
