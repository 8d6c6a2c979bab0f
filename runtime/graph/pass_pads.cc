// Pad nodes in front of convolutions and pools become their padding.
#include <algorithm>

#include "runtime/graph/infer.h"
#include "runtime/graph/pass_support.h"
#include "runtime/graph/passes.h"

namespace tandem {
namespace {

// Padding per spatial dimension: begins, then ends, as in the attribute `pads`.
std::optional<std::vector<std::int64_t>> spatial_pads(const Graph& graph, const Node& pad) {
  const std::size_t rank = graph.value(pad.inputs[0]).shape.size();
  const Tensor* amounts = constant_operand(graph, pad, 1);
  if (!amounts || rank < 3) return std::nullopt;
  const auto given = amounts->to_ints();
  std::vector<std::int64_t> axes;
  if (const Tensor* t = constant_operand(graph, pad, 3))
    axes = t->to_ints();
  else if (operand(pad, 3) != kNoValue)
    return std::nullopt;
  else
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (given.size() != 2 * axes.size()) return std::nullopt;
  std::vector<std::int64_t> pads(2 * (rank - 2), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i] < 0 ? axes[i] + static_cast<std::int64_t>(rank) : axes[i]);
    const std::int64_t begin = given[i], end = given[axes.size() + i];
    if (begin < 0 || end < 0 || (axis < 2 && (begin || end))) return std::nullopt;
    if (axis < 2) continue;
    pads[axis - 2] = begin;
    pads[rank - 2 + axis - 2] = end;
  }
  return pads;
}

bool pads_with_zero(const Graph& graph, const Node& pad) {
  if (pad.attributes.text("mode", "constant") != "constant") return false;
  return operand(pad, 2) == kNoValue || scalar_constant(graph, pad, 2) == 0.0f;
}

// Repeated edges never win against the edge itself, which is in every window that holds them.
bool edges_do_not_matter(const Node& pad, const Node& pool, const std::vector<std::int64_t>& pads) {
  if (pad.attributes.text("mode", "constant") != "edge" || pool.op != "MaxPool" || pool.outputs.size() > 1) return false;
  const auto kernel = pool.attributes.integers("kernel_shape");
  const auto dilations = pool.attributes.integers("dilations", std::vector<std::int64_t>(kernel.size(), 1));
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    if (dilations[d] != 1 || pads[d] >= kernel[d] || pads[kernel.size() + d] >= kernel[d]) return false;
  }
  return true;
}

bool all_zero(const std::vector<std::int64_t>& v) {
  return std::all_of(v.begin(), v.end(), [](std::int64_t x) { return x == 0; });
}

bool can_take(const Graph& graph, const Node& pad, const Node& node, const std::vector<std::int64_t>& pads) {
  const std::string auto_pad = node.attributes.text("auto_pad", "NOTSET");
  if (auto_pad != "NOTSET" && auto_pad != "VALID") return false;
  const auto own = node.attributes.integers("pads", std::vector<std::int64_t>(pads.size(), 0));
  if (own.size() != pads.size()) return false;
  const bool ceil = node.attributes.integer("ceil_mode", 0) != 0;
  if (node.op == "Conv") return pads_with_zero(graph, pad);
  if (node.op == "MaxPool") return !ceil && all_zero(own) && edges_do_not_matter(pad, node, pads);
  if (node.op == "AveragePool") return !ceil && pads_with_zero(graph, pad) && (all_zero(own) || node.attributes.integer("count_include_pad", 0) != 0);
  return false;
}

}  // namespace

int fold_pads(Graph& graph) {
  const Links links(graph);
  int folded = 0;
  for (Node& node : graph.nodes) {
    if (node.op != "Conv" && node.op != "MaxPool" && node.op != "AveragePool") continue;
    Node* pad = links.only_for_me(graph, node.inputs[0]);
    if (!pad || pad->op != "Pad") continue;
    const auto pads = spatial_pads(graph, *pad);
    if (!pads || !can_take(graph, *pad, node, *pads)) continue;
    auto own = node.attributes.integers("pads", std::vector<std::int64_t>(pads->size(), 0));
    if (node.attributes.text("auto_pad", "NOTSET") == "VALID") own.assign(own.size(), 0);
    for (std::size_t i = 0; i < own.size(); ++i) own[i] += (*pads)[i];
    node.attributes.set("pads", own);
    node.attributes.erase("auto_pad");
    if (node.op == "AveragePool") node.attributes.set("count_include_pad", std::int64_t{1});
    node.inputs[0] = pad->inputs[0];
    pad->op.clear();
    infer_node(graph, node);
    ++folded;
  }
  sweep(graph);
  return folded;
}

}  // namespace tandem
