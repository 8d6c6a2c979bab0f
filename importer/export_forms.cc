#include "importer/export_forms.h"

#include <fmt/format.h>

#include <algorithm>

#include "importer/exporter.h"
#include "importer/rules.h"
#include "runtime/base/error.h"

namespace tandem {
namespace {

bool known(const Graph& graph, const Node& node, std::size_t i) {
  return i < node.inputs.size() && node.inputs[i] != kNoValue && graph.value(node.inputs[i]).known();
}
bool has_input(const Node& node, std::size_t i) { return i < node.inputs.size() && node.inputs[i] != kNoValue; }
bool moves_axes(const Node& node) { return node.op.starts_with("Reduce") && node.op != "ReduceSum"; }

std::int64_t oldest_form(const Graph& graph, const Node& node) {
  const Attributes& a = node.attributes;
  const std::string_view op = node.op;
  if (moves_axes(node)) {
    const bool attribute =
        !has_input(node, 1) ? a.integer("noop_with_empty_axes", 0) == 0 : known(graph, node, 1) && graph.value(node.inputs[1]).constant.size() > 0;
    return attribute ? 1 : 18;
  }
  if (op == "Split") return a.has("num_outputs") ? 18 : 13;
  if (op == "Pad") return a.text("mode", "constant") == "wrap" ? 19 : has_input(node, 3) ? 18 : 13;
  if (op == "Resize") {
    if (a.text("coordinate_transformation_mode", "") == "half_pixel_symmetric") return 19;
    return a.has("antialias") || a.has("axes") || a.has("keep_aspect_ratio_policy") ? 18 : 13;
  }
  if (op == "AveragePool") return a.has("dilations") ? 19 : 11;
  if (op == "LpPool") return a.has("dilations") || a.has("ceil_mode") ? 18 : 11;
  if (op == "GroupNormalization") return 21;
  if (op == "QuantizeLinear" || op == "DequantizeLinear") return a.has("output_dtype") ? 23 : a.has("block_size") ? 21 : 13;
  if (op == "ScatterElements" || op == "ScatterND") {
    const std::string reduction = a.text("reduction", "none");
    return reduction == "max" || reduction == "min" ? 18 : 16;
  }
  return 1;
}

}  // namespace

std::int64_t oldest_opset(const Graph& graph) {
  std::int64_t oldest = 17;
  for (const Node& node : graph.nodes) {
    with_context([&] { return describe(graph, node); },
                 [&] {
                   const OperatorForm* form = find_form(node.op);
                   if (!form || form->until < 24) throw Unsupported(fmt::format("operator {} is none of ONNX's and cannot be written", node.op));
                   oldest = std::max({oldest, std::int64_t{form->since}, oldest_form(graph, node)});
                   if (node.op == "If") {
                     for (const char* branch : {"then_branch", "else_branch"})
                       oldest = std::max(oldest, oldest_opset(*node.attributes.graph(branch)));
                   }
                 });
  }
  return oldest;
}

Node node_at_opset(const Graph& graph, const Node& node, std::int64_t opset) {
  Node written = node;
  if (opset < 18 && moves_axes(node)) {
    written.attributes.erase("noop_with_empty_axes");
    if (has_input(node, 1)) written.attributes.set("axes", graph.value(node.inputs[1]).constant.to_ints());
    written.inputs.resize(1);
  }
  return written;
}

}  // namespace tandem
