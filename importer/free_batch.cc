#include "importer/free_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "runtime/base/error.h"
#include "runtime/plan/rows.h"

namespace tandem {
namespace {

constexpr std::size_t kCandidates = 4;  // different baked batches that are tried

bool fixed_batch(const Graph& graph) {
  const Declared& first = graph.declared_inputs[0];
  return first.shape_known && !first.shape.empty() && first.shape[0] > 0;
}

bool bakes_dimension(const Graph& graph, const Node& node) {
  if (node.op != "Reshape" || node.inputs.size() < 2 || graph.value(node.inputs[0]).known()) return false;
  const Value& target = graph.value(node.inputs[1]);
  return target.known() && target.constant.dtype() == DType::kI64 && target.constant.size() > 0 && target.constant.as<std::int64_t>()[0] > 0;
}

// The batch that the constants hold: the file's, or in a file that says "any", the one with which the shapes fit.
std::optional<std::int64_t> baked_batch(const Graph& graph) {
  if (fixed_batch(graph)) return graph.declared_inputs[0].shape[0];
  std::set<std::int64_t> candidates;
  for (const Node& node : graph.nodes) {
    if (bakes_dimension(graph, node)) candidates.insert(graph.value(node.inputs[1]).constant.as<std::int64_t>()[0]);
  }
  if (candidates.empty() || candidates.size() > kCandidates || (inferred(graph, 2) && inferred(graph, 3))) return {};
  for (const std::int64_t batch : candidates) {
    if (inferred(graph, batch)) return batch;
  }
  return {};
}

// Lets the first dimension of constant targets follow the data; true where that was possible for a node.
bool free_target(Graph& graph, const Graph& shapes, Node& node, std::int64_t batch) {
  const Shape& in = shapes.value(node.inputs[0]).shape;
  const Shape& out = shapes.value(node.outputs[0]).shape;
  const Tensor& old = graph.value(node.inputs[1]).constant;
  std::vector<std::int64_t> target = old.to_ints();
  if (in.empty() || out.empty() || in[0] % batch != 0 || out[0] % batch != 0) return false;
  const bool all_zero_means_empty = node.attributes.integer("allowzero", 0) != 0;
  if (in[0] == out[0]) {
    if (all_zero_means_empty && std::find(target.begin(), target.end(), 0) != target.end()) return false;
    node.attributes.erase("allowzero");
    target[0] = 0;
  } else {
    for (std::size_t d = 1; d < target.size(); ++d) {
      if (target[d] < 0) target[d] = out[d];
    }
    if (std::find(out.begin(), out.end(), 0) != out.end()) return false;
    target[0] = -1;
  }
  node.inputs[1] = graph.add_constant(fmt::format("{}/any_batch#{}", graph.value(node.outputs[0]).name, graph.values.size()), Tensor::ints(target));
  return true;
}

void declare_dynamic(Graph& graph, const CutProof& proof) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    if (!proof.input_batched[i]) continue;
    graph.declared_inputs[i].shape[0] = -1;
    graph.value(graph.inputs[i]).shape[0] = -1;
  }
  for (Declared& d : graph.declared_outputs) {
    if (d.shape_known && !d.shape.empty()) d.shape[0] = -1;
  }
}

}  // namespace

void free_batch(Graph& graph, Notes& notes) {
  if (graph.declared_inputs.empty()) return;
  const auto batch = baked_batch(graph);
  if (!batch || *batch < 1) return;
  const auto shapes = inferred(graph, *batch);
  if (!shapes) return;
  Graph freed = graph;
  std::size_t count = 0;
  for (Node& node : freed.nodes) {
    if (bakes_dimension(freed, node)) count += free_target(freed, *shapes, node, *batch);
  }
  const bool fixed = fixed_batch(graph);
  if (!fixed && count == 0) return;
  const CutProof proof = prove_cut(freed, *declared_binding(freed, *batch));
  if (!proof.possible) return;
  if (fixed) declare_dynamic(freed, proof);
  graph = std::move(freed);
  if (count == 0) return notes.add(fmt::format("exported for a batch of {}, runs with any", *batch));
  notes.add(fmt::format("exported for a batch of {}, runs with any: {} constant {} held the batch", *batch, count, count == 1 ? "shape" : "shapes"));
}

}  // namespace tandem
