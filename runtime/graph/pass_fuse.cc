// Convolutions compute what stands behind them (addition, activation) and before them (ReLU) while they have the data at hand.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/graph/infer.h"
#include "runtime/graph/pass_support.h"
#include "runtime/graph/passes.h"

namespace tandem {
namespace {

constexpr std::size_t kResidual = 3;  // operand of FusedConv

bool is_convolution(const Graph& graph, const Node& node) {
  if (node.op != "Conv" && node.op != "FusedConv") return false;
  return constant_operand(graph, node, 1) && graph.value(node.outputs[0]).dtype == DType::kF32;
}

bool has_activation(const Node& conv) { return conv.attributes.text("activation", "none") != "none"; }

struct Epilogue {
  std::string name;
  std::optional<float> min, max, alpha, beta;
};

// The activation that a node computes from operand 0, in the words of FusedConv.
std::optional<Epilogue> epilogue_of(const Graph& graph, const Node& node) {
  const Attributes& a = node.attributes;
  if (node.op == "Relu") return Epilogue{"relu"};
  if (node.op == "Sigmoid") return Epilogue{"sigmoid"};
  if (node.op == "Tanh") return Epilogue{"tanh"};
  if (node.op == "Mish") return Epilogue{"mish"};
  if (node.op == "HardSwish") return Epilogue{"hard_swish"};
  if (node.op == "LeakyRelu") return Epilogue{.name = "leaky_relu", .alpha = a.real("alpha", 0.01f)};
  if (node.op == "Elu") return Epilogue{.name = "elu", .alpha = a.real("alpha", 1.0f)};
  if (node.op == "HardSigmoid") return Epilogue{.name = "hard_sigmoid", .alpha = a.real("alpha", 0.2f), .beta = a.real("beta", 0.5f)};
  if (node.op == "Swish" && a.real("alpha", 1.0f) == 1.0f) return Epilogue{"swish"};
  if (node.op == "Clip") {
    Epilogue e{"clip"};
    e.min = operand(node, 1) == kNoValue ? -std::numeric_limits<float>::infinity() : scalar_constant(graph, node, 1);
    e.max = operand(node, 2) == kNoValue ? std::numeric_limits<float>::infinity() : scalar_constant(graph, node, 2);
    if (e.min && e.max && *e.min <= *e.max) return e;
  }
  return std::nullopt;
}

void set_activation(Attributes& a, const std::string& prefix, const Epilogue& e) {
  a.set(prefix, e.name);
  if (e.min) a.set(prefix + "_min", *e.min);
  if (e.max) a.set(prefix + "_max", *e.max);
  if (e.alpha) a.set(prefix + "_alpha", *e.alpha);
  if (e.beta) a.set(prefix + "_beta", *e.beta);
}

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph), links_(graph) {}

  int run() {
    int fused = 0;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      Node& node = graph_.nodes[n];
      if (node.op.empty() || node.outputs.size() != 1) continue;
      fused += take_activation(node) || take_gate(node) || take_addition(n) || take_relu_before(node);
    }
    sweep(graph_);
    return fused;
  }

 private:
  Node* fusable(ValueId id) {
    Node* conv = links_.only_for_me(graph_, id);
    return conv && is_convolution(graph_, *conv) && !has_activation(*conv) ? conv : nullptr;
  }

  // The convolution now makes what `node` made.
  void replace(Node& node, Node& conv) {
    conv.op = "FusedConv";
    links_.producer[static_cast<std::size_t>(node.outputs[0])] = static_cast<std::int32_t>(&conv - graph_.nodes.data());
    conv.outputs[0] = node.outputs[0];
    node.op.clear();
    infer_node(graph_, conv);
  }

  bool take_activation(Node& node) {
    const auto epilogue = epilogue_of(graph_, node);
    if (!epilogue) return false;
    Node* conv = fusable(node.inputs[0]);
    if (!conv) return false;
    set_activation(conv->attributes, "activation", *epilogue);
    replace(node, *conv);
    return true;
  }

  // x * sigmoid(x) and x * hard_sigmoid(x) with the slope of 1/6.
  bool take_gate(Node& node) {
    if (node.op != "Mul") return false;
    for (std::size_t i = 0; i < 2; ++i) {
      const ValueId x = node.inputs[i];
      Node* gate = links_.only_for_me(graph_, node.inputs[1 - i]);
      if (!gate || (gate->op != "Sigmoid" && gate->op != "HardSigmoid") || gate->inputs[0] != x || links_.uses[static_cast<std::size_t>(x)] != 2)
        continue;
      const bool hard = gate->op == "HardSigmoid";
      const float slope = gate->attributes.real("alpha", 0.2f);
      if (hard && (std::abs(slope - 1.0f / 6) > 1e-6f || gate->attributes.real("beta", 0.5f) != 0.5f)) continue;
      const auto p = links_.producer[static_cast<std::size_t>(x)];
      if (p < 0) continue;
      Node& conv = graph_.nodes[static_cast<std::size_t>(p)];
      if (!is_convolution(graph_, conv) || has_activation(conv)) continue;
      gate->op.clear();
      set_activation(conv.attributes, "activation", Epilogue{hard ? "hard_swish" : "swish"});
      replace(node, conv);
      return true;
    }
    return false;
  }

  // conv + residual: the convolution moves to where the addition stood, since the other operand may come after it.
  bool take_addition(std::size_t n) {
    Node& add = graph_.nodes[n];
    if (add.op != "Add") return false;
    const Shape& shape = graph_.value(add.outputs[0]).shape;
    Node* best = nullptr;
    ValueId residual = kNoValue;
    for (std::size_t i = 0; i < 2; ++i) {
      Node* conv = fusable(add.inputs[i]);
      const ValueId other = add.inputs[1 - i];
      if (!conv || operand(*conv, kResidual) != kNoValue || graph_.value(other).known()) continue;
      if (graph_.value(add.inputs[i]).shape != shape || graph_.value(other).shape != shape || (best && conv < best)) continue;
      best = conv;
      residual = other;
    }
    if (!best) return false;
    Node fused = std::move(*best);
    best->op.clear();
    best->outputs.clear();
    best->inputs.clear();
    fused.op = "FusedConv";
    fused.inputs.resize(kResidual + 1, kNoValue);
    fused.inputs[kResidual] = residual;
    fused.outputs[0] = add.outputs[0];
    add = std::move(fused);
    infer_node(graph_, add);
    return true;
  }

  // A ReLU that only this convolution reads and that nobody before could compute.
  bool take_relu_before(Node& conv) {
    if (!is_convolution(graph_, conv) || conv.attributes.integer("pre_relu", 0)) return false;
    Node* relu = links_.only_for_me(graph_, conv.inputs[0]);
    if (!relu || relu->op != "Relu") return false;
    conv.op = "FusedConv";
    conv.attributes.set("pre_relu", std::int64_t{1});
    conv.inputs[0] = relu->inputs[0];
    relu->op.clear();
    infer_node(graph_, conv);
    return true;
  }

  Graph& graph_;
  Links links_;
};

bool all_are(const std::vector<std::int64_t>& v, std::int64_t want) {
  return std::all_of(v.begin(), v.end(), [&](std::int64_t x) { return x == want; });
}

bool is_depthwise(const Graph& graph, const Node& node) {
  if (!is_convolution(graph, node) || operand(node, kResidual) != kNoValue) return false;
  const Shape& x = graph.value(node.inputs[0]).shape;
  const Shape& w = constant_operand(graph, node, 1)->shape();
  return x.size() == 4 && w[1] == 1 && w[0] == x[1] && node.attributes.integer("group", 1) == x[1] && x[1] > 1;
}

bool is_pointwise(const Graph& graph, const Node& node) {
  if (!is_convolution(graph, node) || node.attributes.integer("group", 1) != 1) return false;
  const Shape& w = constant_operand(graph, node, 1)->shape();
  return w.size() == 4 && w[2] == 1 && w[3] == 1 && all_are(node.attributes.integers("strides", {1, 1}), 1) &&
         all_are(node.attributes.integers("pads", {0, 0, 0, 0}), 0);
}

// The pointwise node, which stands behind, becomes the separable one.
void join(Graph& graph, Node& depthwise, Node& pointwise) {
  Attributes a;
  for (const auto& [name, value] : depthwise.attributes) a.set(name.starts_with("activation") ? "mid_" + name : name, value);
  for (const auto& [name, value] : pointwise.attributes) {
    if (name.starts_with("activation")) a.set(name, value);
  }
  if (pointwise.attributes.integer("pre_relu", 0)) a.set("mid_activation", std::string("relu"));
  Node fused;
  fused.name = pointwise.name;
  fused.op = "FusedSeparable";
  fused.attributes = std::move(a);
  fused.inputs = {depthwise.inputs[0], depthwise.inputs[1],   operand(depthwise, 2),
                  pointwise.inputs[1], operand(pointwise, 2), operand(pointwise, kResidual)};
  while (fused.inputs.back() == kNoValue) fused.inputs.pop_back();
  fused.outputs = pointwise.outputs;
  depthwise.op.clear();
  pointwise = std::move(fused);
  infer_node(graph, pointwise);
}

}  // namespace

int fuse_epilogues(Graph& graph) { return Fuser(graph).run(); }

int fuse_separable(Graph& graph) {
  const Links links(graph);
  int fused = 0;
  for (Node& node : graph.nodes) {
    if (node.op.empty() || !is_pointwise(graph, node)) continue;
    Node* depthwise = links.only_for_me(graph, node.inputs[0]);
    if (!depthwise || !is_depthwise(graph, *depthwise) || (has_activation(*depthwise) && node.attributes.integer("pre_relu", 0))) continue;
    join(graph, *depthwise, node);
    ++fused;
  }
  sweep(graph);
  return fused;
}

}  // namespace tandem
