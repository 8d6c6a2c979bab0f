// Which constants of a graph are parameters, and how they lie in Keras.
#include "models/weights_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "models/dense_rows.h"
#include "models/layer_order.h"
#include "models/trainable.h"
#include "runtime/base/error.h"

namespace tandem::models {
namespace {

constexpr std::size_t kNamed = 5;          // constants that a refusal lists
constexpr std::int64_t kFreeElements = 4;  // constants up to this size may have any name: scalings of pixels, limits, exponents

std::vector<std::size_t> spatial_last(std::size_t rank, std::size_t a, std::size_t b) {  // 2, 3, ..., a, b
  std::vector<std::size_t> perm;
  for (std::size_t i = 2; i < rank; ++i) perm.push_back(i);
  perm.push_back(a);
  perm.push_back(b);
  return perm;
}

bool names_depthwise(const std::string& word, const Shape& w, std::int64_t group) {
  return word == "depthwise_kernel" || (word == "kernel" && group > 1 && w[1] == 1);
}

std::optional<ArrayForm> conv_form(const Node& node, const std::string& word, const Shape& w) {
  const std::int64_t group = node.attributes.integer("group", 1);
  if (w.size() < 3 || group < 1) return std::nullopt;
  if (!names_depthwise(word, w, group)) return ArrayForm::permuted(w, w, spatial_last(w.size(), 1, 0));
  if (w[1] != 1 || w[0] % group != 0) return std::nullopt;
  Shape split{group, w[0] / group};
  split.insert(split.end(), w.begin() + 2, w.end());
  return ArrayForm::permuted(w, split, spatial_last(w.size(), 0, 1));
}

std::optional<ArrayForm> dense_form(const Graph& graph, const Node& node, const Shape& w) {
  if (w.size() != 2) return std::nullopt;
  const bool transposed = node.op == "Gemm" && node.attributes.integer("transB", 0) != 0;
  if (node.op == "Gemm" && node.attributes.integer("transA", 0) != 0) return std::nullopt;
  const auto rows = flattened_shape(graph, node);
  if (!rows) return transposed ? ArrayForm::permuted(w, w, {1, 0}) : ArrayForm::same(w, w);
  if (elements(*rows) != w[transposed ? 1 : 0]) return std::nullopt;
  // C, spatial... to spatial..., C, with the outputs behind.
  const std::size_t n = rows->size(), first = transposed ? 1 : 0;
  Shape split(*rows);
  split.insert(transposed ? split.begin() : split.end(), w[transposed ? 0 : 1]);
  std::vector<std::size_t> perm;
  for (std::size_t i = 1; i < n; ++i) perm.push_back(first + i);
  perm.push_back(first);
  perm.push_back(transposed ? 0 : n);
  ArrayForm form = ArrayForm::permuted(w, split, perm);
  form.keras = {elements(*rows), split[perm.back()]};
  return form;
}

std::optional<ArrayForm> vector_form(const Shape& w) {
  if (std::count_if(w.begin(), w.end(), [](std::int64_t d) { return d != 1; }) > 1) return std::nullopt;
  return ArrayForm::same(w, {elements(w)});
}

// The word must fit the operand; none where Keras has no such weight.
std::optional<ArrayForm> form_of(const Graph& graph, const Node& node, std::size_t operand, const std::string& word, const Shape& w) {
  const std::string& op = node.op;
  const bool kernel = word == "kernel" || word == "depthwise_kernel" || word == "pointwise_kernel";
  if (op == "Conv" && operand == 1 && kernel) return conv_form(node, word, w);
  if (op == "ConvTranspose" && operand == 1 && word == "kernel" && w.size() >= 3) return ArrayForm::permuted(w, w, spatial_last(w.size(), 1, 0));
  if ((op == "Gemm" || op == "MatMul") && operand == 1 && word == "kernel") return dense_form(graph, node, w);
  if (word == "bias") {
    const bool place = ((op == "Conv" || op == "ConvTranspose" || op == "Gemm") && operand == 2) || op == "Add";
    return place ? vector_form(w) : std::nullopt;
  }
  if (op == "BatchNormalization") {
    constexpr const char* kOperands[] = {"", "gamma", "beta", "moving_mean", "moving_variance"};
    return operand < 5 && word == kOperands[operand] ? vector_form(w) : std::nullopt;
  }
  if (op == "LayerNormalization" || op == "GroupNormalization" || op == "InstanceNormalization") {
    return (operand == 1 && word == "gamma") || (operand == 2 && word == "beta") ? std::optional(ArrayForm::same(w, w)) : std::nullopt;
  }
  if (op == "PRelu" && operand == 1 && word == "alpha" && !w.empty()) {
    if (w.size() < 2) return ArrayForm::same(w, w);
    std::vector<std::size_t> perm;  // (C, spatial...) to (spatial..., C)
    for (std::size_t i = 1; i < w.size(); ++i) perm.push_back(i);
    perm.push_back(0);
    return ArrayForm::permuted(w, w, perm);
  }
  if (op == "Gather" && operand == 0 && word == "embeddings") return ArrayForm::same(w, w);
  return std::nullopt;
}

bool same_form(const ArrayForm& a, const ArrayForm& b) { return a.split == b.split && a.perm == b.perm && a.keras == b.keras; }

struct Found {
  std::map<std::string, std::map<std::string, Parameter>> layers;  // layer -> word -> parameter
  std::map<std::size_t, std::string> layer_of;                     // node -> layer
  std::vector<std::string> strangers;
};

void look_at(const Graph& graph, std::size_t n, std::size_t operand, Found& found) {
  const Node& node = graph.nodes[n];
  const Value& v = graph.value(node.inputs[operand]);
  if (!v.known() || v.constant.dtype() != DType::kF32) return;
  const auto name = parse_parameter_name(v.name);
  const auto form = name ? form_of(graph, node, operand, name->word, v.constant.shape()) : std::nullopt;
  if (!form) {
    const bool product =
        (node.op == "Conv" || node.op == "ConvTranspose" || node.op == "Gemm" || node.op == "MatMul" || node.op == "BatchNormalization");
    if (name || product || v.constant.size() > kFreeElements) found.strangers.push_back(fmt::format("\"{}\" of {}", v.name, describe(graph, node)));
    return;
  }
  const auto [at, fresh] = found.layers[name->layer].emplace(name->word, Parameter{name->word, node.inputs[operand], *form});
  if (!fresh && (at->second.value != node.inputs[operand] || !same_form(at->second.form, *form))) {
    found.strangers.push_back(fmt::format("\"{}\" of {} (its layer has another {})", v.name, describe(graph, node), name->word));
  }
  found.layer_of.emplace(n, name->layer);
}

}  // namespace

std::vector<ParameterLayer> parameter_layers(const Graph& graph) {
  Found found;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (std::size_t i = 0; i < graph.nodes[n].inputs.size(); ++i) {
      if (graph.nodes[n].inputs[i] != kNoValue) look_at(graph, n, i, found);
    }
  }
  if (!found.strangers.empty() || found.layers.empty()) {
    std::string list;
    for (std::size_t i = 0; i < std::min(kNamed, found.strangers.size()); ++i) list += "\n  " + found.strangers[i];
    if (found.strangers.size() > kNamed) list += fmt::format("\n  and {} more", found.strangers.size() - kNamed);
    throw Unsupported(
        fmt::format("the network's weights do not correspond one to one to Keras layers: {} of its constants have no name layer/weight with a "
                    "weight of Keras (kernel, bias, gamma, ...) in the place for it, as after batch norm was folded by an exporter{}",
                    found.layers.empty() ? "all" : std::to_string(found.strangers.size()), list));
  }
  std::vector<ParameterLayer> layers;
  for (const std::string& name : layer_order(graph, found.layer_of)) {
    ParameterLayer layer{name, {}};
    for (auto& [word, parameter] : found.layers[name]) layer.parameters.push_back(parameter);
    std::sort(layer.parameters.begin(), layer.parameters.end(),
              [](const Parameter& a, const Parameter& b) { return word_order(a.word) < word_order(b.word); });
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::vector<Layer> keras_layers(const Graph& graph) {
  std::vector<Layer> layers;
  for (const ParameterLayer& from : parameter_layers(graph)) {
    Layer layer{from.name, {}};
    for (const Parameter& p : from.parameters) {
      // Keras 2 calls a DepthwiseConv2D's kernel so.
      const bool depthwise = p.word == "kernel" && is_depthwise(p.form);
      layer.weights.push_back({fmt::format("{}/{}:0", from.name, depthwise ? "depthwise_kernel" : p.word), DType::kF32, p.form.keras,
                               [form = p.form, t = graph.value(p.value).constant] { return to_keras(form, t.made()); }});
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::vector<Layer> own_layers(const Graph& graph) {
  std::vector<Layer> layers;
  std::map<std::string, std::size_t> places;
  std::set<ValueId> seen;
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.inputs) {
      if (id == kNoValue || !graph.value(id).known() || !seen.insert(id).second) continue;
      const ArrayName called = name_of_array(graph.value(id).name);
      const auto [at, fresh] = places.emplace(called.layer, layers.size());
      if (fresh) layers.push_back({called.layer, {}});
      const Tensor& c = graph.value(id).constant;
      layers[at->second].weights.push_back({called.name, c.dtype(), c.shape(), [c] { return c.made(); }});
    }
  }
  return layers;
}

}  // namespace tandem::models
