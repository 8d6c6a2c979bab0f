#include "runtime/graph/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace tandem {
namespace {

bool is_depthwise(const Graph& graph, const Node& node) {
  if (node.op != "Conv") return false;
  const Shape& x = graph.value(node.inputs[0]).shape;
  return x.size() > 2 && x[1] > 1 && node.attributes.integer("group", 1) == x[1];
}

bool is_cheap(const Graph& graph, const Node& node, Recompute what) {
  constexpr std::array<std::string_view, 19> kCheap = {
      "BatchNormTraining", "BatchNormalization", "Cast", "Clip",  "Elu",  "Erf",  "Gelu",    "HardSigmoid", "HardSwish",
      "Identity",          "LeakyRelu",          "Mish", "PRelu", "Relu", "Selu", "Sigmoid", "Softplus",    "Swish",
      "TrainingDropout"};
  // With whole blocks: where branches meet or images shrink, and what the shards agreed on, is kept.
  constexpr std::array<std::string_view, 9> kKept = {"Add",          "Sum",          "Concat",  "MaxPool", "AveragePool", "GlobalAveragePool",
                                                     "BatchMoments", "ShardMoments", "ShardSum"};
  if (what == Recompute::kNothing) return false;
  if (what == Recompute::kBlocks) return std::find(kKept.begin(), kKept.end(), node.op) == kKept.end();
  return std::find(kCheap.begin(), kCheap.end(), node.op) != kCheap.end() || (what == Recompute::kDepthwise && is_depthwise(graph, node));
}

class Repeater {
 public:
  Repeater(Graph& graph, std::size_t forward_nodes, Recompute what)
      : graph_(graph),
        forward_nodes_(forward_nodes),
        what_(what),
        producer_(producers(graph)),
        again_(graph.values.size(), kNoValue),
        read_(graph.values.size(), false) {}

  int run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    forward_.assign(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(forward_nodes_));
    made_.assign(forward_.begin(), forward_.end());
    for (std::size_t n = forward_nodes_; n < nodes.size(); ++n) {
      for (const ValueId in : nodes[n].inputs) {
        if (in != kNoValue && static_cast<std::size_t>(in) < read_.size()) read_[static_cast<std::size_t>(in)] = true;
      }
    }
    for (std::size_t n = forward_nodes_; n < nodes.size(); ++n) {
      for (ValueId& in : nodes[n].inputs) in = again(in);
      made_.push_back(std::move(nodes[n]));
    }
    graph_.nodes = std::move(made_);
    return repeated_;
  }

 private:
  // The value as the backward pass reads it.
  ValueId again(ValueId id) {
    if (id == kNoValue || static_cast<std::size_t>(id) >= producer_.size()) return id;
    const auto at = static_cast<std::size_t>(id);
    if (again_[at] != kNoValue) return again_[at];
    const auto from = producer_[at];
    if (from < 0 || static_cast<std::size_t>(from) >= forward_nodes_ || forward_[static_cast<std::size_t>(from)].outputs.size() != 1) return id;
    Node copy = forward_[static_cast<std::size_t>(from)];
    if (!is_cheap(graph_, copy, what_) || !sources_are_kept(copy)) return id;
    for (ValueId& in : copy.inputs) in = again(in);
    copy.name += "/again";
    Value value = graph_.value(id);
    value.name = fmt::format("{}/again", value.name);
    graph_.values.push_back(std::move(value));
    copy.outputs = {static_cast<ValueId>(graph_.values.size() - 1)};
    again_[at] = copy.outputs[0];
    made_.push_back(std::move(copy));
    ++repeated_;
    return again_[at];
  }

  // Repeating pays only where the operands are there anyway: a ReLU behind a convolution without normalisation is better kept itself.
  bool sources_are_kept(const Node& node) const {
    if (what_ == Recompute::kBlocks) return true;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) {
      if (in == kNoValue) return true;
      const auto from = producer_[static_cast<std::size_t>(in)];
      if (from < 0 || read_[static_cast<std::size_t>(in)]) return true;
      const Node& source = forward_[static_cast<std::size_t>(from)];
      return source.op == "ShardMoments" || source.op == "BatchMoments" || (is_cheap(graph_, source, what_) && sources_are_kept(source));
    });
  }

  Graph& graph_;
  const std::size_t forward_nodes_;
  const Recompute what_;
  const std::vector<std::int32_t> producer_;
  std::vector<ValueId> again_;  // of forward values: their repetition
  std::vector<bool> read_;      // forward values that backward nodes read
  std::vector<Node> forward_, made_;
  int repeated_ = 0;
};

}  // namespace

int recompute(Graph& graph, std::size_t forward_nodes, Recompute what) { return Repeater(graph, forward_nodes, what).run(); }

}  // namespace tandem
