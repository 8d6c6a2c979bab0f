// Per-channel affine nodes behind a convolution go into its weights and bias:
// s * (W x + b) + t = (s W) x + (s b + t), with s and t per output channel.
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/graph/infer.h"
#include "runtime/graph/pass_support.h"
#include "runtime/graph/passes.h"

namespace tandem {
namespace {

// y = scale * x + shift, per channel.
struct Affine {
  std::vector<double> scale, shift;
};

// The values of a constant that has one element, or one for each channel on axis 1 of a rank-`rank` tensor.
std::optional<std::vector<double>> per_channel(const Tensor& t, std::size_t rank, std::int64_t channels) {
  if (t.dtype() != DType::kF32 || t.shape().size() > rank) return std::nullopt;
  if (t.size() == 1) return std::vector<double>(static_cast<std::size_t>(channels), t.to_doubles()[0]);
  Shape padded(rank - t.shape().size(), 1);
  padded.insert(padded.end(), t.shape().begin(), t.shape().end());
  for (std::size_t d = 0; d < rank; ++d) {
    if (padded[d] != (d == 1 ? channels : 1)) return std::nullopt;
  }
  return t.to_doubles();
}

std::optional<Affine> affine_of_norm(const Graph& graph, const Node& node) {
  if (node.attributes.integer("training_mode", 0) != 0) return std::nullopt;
  std::vector<double> p[4];
  for (std::size_t i = 0; i < 4; ++i) {
    const Tensor* t = constant_operand(graph, node, i + 1);
    if (!t || t->dtype() != DType::kF32) return std::nullopt;
    p[i] = t->to_doubles();
    if (p[i].size() != p[0].size()) return std::nullopt;
  }
  const double epsilon = node.attributes.real("epsilon", 1e-5f);
  Affine a;
  for (std::size_t c = 0; c < p[0].size(); ++c) {
    const double s = p[0][c] / std::sqrt(p[3][c] + epsilon);
    a.scale.push_back(s);
    a.shift.push_back(p[1][c] - s * p[2][c]);
  }
  return a;
}

// What a convolution gives, told by its weights: what is folded must not depend on shapes, which the graph of a file does not have.
struct Result {
  std::size_t rank;
  std::int64_t channels;
};

// The affine map that a node applies to operand `data`, the result of a convolution, if it is one.
std::optional<Affine> affine_of(const Graph& graph, const Node& node, std::size_t data, const Result& result) {
  if (node.op == "BatchNormalization") return data == 0 ? affine_of_norm(graph, node) : std::nullopt;
  if (node.op != "Mul" && node.op != "Add" && node.op != "Sub" && node.op != "Div") return std::nullopt;
  const Tensor* t = constant_operand(graph, node, 1 - data);
  if (!t) return std::nullopt;
  const auto values = per_channel(*t, result.rank, result.channels);
  if (!values) return std::nullopt;
  Affine a;
  a.scale.assign(values->size(), 1.0);
  a.shift.assign(values->size(), 0.0);
  for (std::size_t c = 0; c < values->size(); ++c) {
    const double v = (*values)[c];
    if (node.op == "Mul") a.scale[c] = v;
    if (node.op == "Add") a.shift[c] = v;
    if (node.op == "Sub") a.shift[c] = data == 0 ? -v : v;
    if (node.op == "Sub" && data == 1) a.scale[c] = -1;
    if (node.op == "Div") a.scale[c] = 1 / v;
  }
  if (node.op == "Div" && data == 1) return std::nullopt;
  return a;
}

// Nothing where the node is no convolution, or one whose weights are not ours to change.
std::optional<Result> foldable_convolution(const Graph& graph, const Node& node) {
  if (node.op != "Conv" && node.op != "ConvTranspose") return std::nullopt;
  const Tensor *w = constant_operand(graph, node, 1), *bias = constant_operand(graph, node, 2);
  const std::int64_t group = node.attributes.integer("group", 1);
  if (!w || w->dtype() != DType::kF32 || w->shape().size() < 3 || group < 1 || w->shape()[0] % group != 0) return std::nullopt;
  const Result result{w->shape().size(), node.op == "Conv" ? w->shape()[0] : w->shape()[1] * group};
  if (operand(node, 2) != kNoValue && (!bias || bias->dtype() != DType::kF32 || bias->shape() != Shape{result.channels})) return std::nullopt;
  return result;
}

// Output channel of each slab of `inner` consecutive weights.
Tensor scaled_weights(const Tensor& w, const std::vector<double>& scale, bool transposed, std::int64_t group) {
  Tensor out(DType::kF32, w.shape());
  const auto from = w.as<float>();
  const auto to = out.as_mutable<float>();
  const Shape& s = w.shape();
  const std::size_t inner = static_cast<std::size_t>(elements(std::span(s).subspan(transposed ? 2 : 1)));
  for (std::size_t slab = 0; slab * inner < from.size(); ++slab) {
    std::size_t channel = slab;
    if (transposed) {  // [I, O / group, ...]
      const auto in = static_cast<std::int64_t>(slab) / s[1], per_group = s[0] / group;
      channel = static_cast<std::size_t>(in / per_group * s[1] + static_cast<std::int64_t>(slab) % s[1]);
    }
    const auto factor = static_cast<float>(scale[channel]);
    for (std::size_t i = slab * inner; i < (slab + 1) * inner; ++i) to[i] = from[i] * factor;
  }
  return out;
}

void fold(Graph& graph, Node& conv, const Affine& a) {
  const Tensor w = *constant_operand(graph, conv, 1);
  const std::string base = graph.value(conv.inputs[1]).name;
  bool unit = true;
  for (const double s : a.scale) unit &= s == 1.0;
  if (!unit) {
    auto scale = [w, scale = a.scale, transposed = conv.op == "ConvTranspose", group = conv.attributes.integer("group", 1)] {
      return scaled_weights(w.made(), scale, transposed, group);
    };
    conv.inputs[1] = graph.add_constant(fresh_name(graph, base), Tensor::deferred(DType::kF32, w.shape(), std::move(scale), w.making_bytes()));
  }
  Tensor bias(DType::kF32, {static_cast<std::int64_t>(a.scale.size())});
  const Tensor* old = constant_operand(graph, conv, 2);
  for (std::size_t c = 0; c < a.scale.size(); ++c) {
    const double b = old ? static_cast<double>(old->as<float>()[c]) : 0.0;
    bias.as_mutable<float>()[c] = static_cast<float>(a.scale[c] * b + a.shift[c]);
  }
  conv.inputs.resize(3, kNoValue);
  conv.inputs[2] = graph.add_constant(fresh_name(graph, base + "/bias"), std::move(bias));
}

bool usable(const Affine& a, std::int64_t channels) {
  if (a.scale.size() != static_cast<std::size_t>(channels)) return false;
  for (std::size_t c = 0; c < a.scale.size(); ++c) {
    if (!std::isfinite(a.scale[c]) || !std::isfinite(a.shift[c])) return false;
  }
  return true;
}

}  // namespace

int fold_into_convolutions(Graph& graph) {
  Links links(graph);
  int folded = 0;
  for (Node& node : graph.nodes) {
    for (std::size_t data = 0; data < std::min<std::size_t>(2, node.inputs.size()); ++data) {
      if (node.outputs.size() != 1) break;
      Node* conv = links.only_for_me(graph, node.inputs[data]);
      const auto result = conv ? foldable_convolution(graph, *conv) : std::nullopt;
      if (!result) continue;
      const auto affine = affine_of(graph, node, data, *result);
      if (!affine || !usable(*affine, result->channels)) continue;
      fold(graph, *conv, *affine);
      links.producer[static_cast<std::size_t>(node.outputs[0])] = links.producer[static_cast<std::size_t>(conv->outputs[0])];
      conv->outputs[0] = node.outputs[0];
      if (conv->params) infer_node(graph, *conv);  // in an inferred graph
      node.op.clear();
      ++folded;
      break;
    }
  }
  sweep(graph);
  return folded;
}

}  // namespace tandem
