#include "models/trainable.h"

#include <algorithm>
#include <set>

#include "models/keras_names.h"
#include "models/weight_operands.h"

namespace tandem::models {
namespace {

bool all_are(const Graph& graph, ValueId id, float value) {
  if (id == kNoValue || !graph.value(id).known() || graph.value(id).constant.dtype() != DType::kF32) return false;
  const auto v = graph.value(id).constant.as<float>();
  return std::all_of(v.begin(), v.end(), [value](float x) { return x == value; });
}

}  // namespace

ArrayName name_of_array(const std::string& in_file) {
  if (const auto parsed = parse_parameter_name(in_file)) return {parsed->layer + '/' + parsed->word, parsed->layer};
  const std::size_t end = in_file.find_last_of("./");
  return {in_file, end == std::string::npos ? in_file : in_file.substr(0, end)};
}

std::vector<TrainableArray> trainable_arrays(const Graph& graph) {
  const WeightOperands operands(graph);
  const auto norms = batch_norm_layers(graph);
  std::vector<TrainableArray> arrays;
  std::set<ValueId> seen;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      const WeightRole role = operands.role(node, i);
      if (role == WeightRole::kNone || role == WeightRole::kMean || role == WeightRole::kVariance || !seen.insert(id).second) continue;
      const ArrayName called = name_of_array(graph.value(id).name);
      TrainableArray made;
      made.name = called.name;
      made.layer = called.layer;
      made.value = id;
      made.is_kernel = role == WeightRole::kKernel || role == WeightRole::kTable;
      const auto norm = std::find_if(norms.begin(), norms.end(), [&](const BatchNormLayer& l) { return l.node == n; });
      if (norm != norms.end()) made.batch_norm = static_cast<std::int32_t>(norm - norms.begin());
      arrays.push_back(std::move(made));
    }
  }
  return arrays;
}

bool batch_norm_absorbed(const Graph& graph, const BatchNormLayer& l) {
  return all_are(graph, l.statistics.mean, 0) && all_are(graph, l.statistics.variance, 1) &&
         !(all_are(graph, l.gamma, 1) && all_are(graph, l.beta, 0));
}

bool batch_norms_absorbed(const Graph& graph) {
  const auto layers = batch_norm_layers(graph);
  return !layers.empty() && std::all_of(layers.begin(), layers.end(), [&](const BatchNormLayer& l) { return batch_norm_absorbed(graph, l); });
}

}  // namespace tandem::models
