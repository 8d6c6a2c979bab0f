#include "runtime/graph/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/graph/gradient.h"
#include "runtime/graph/network_end.h"
#include "runtime/graph/passes.h"

namespace tandem {
namespace {

ValueId add_node(Graph& graph, const std::string& op, std::string name, std::vector<ValueId> inputs, Attributes attributes, std::size_t outputs = 1) {
  Node node;
  node.name = std::move(name);
  node.op = op;
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  for (std::size_t o = 0; o < outputs; ++o) node.outputs.push_back(graph.add_value(fmt::format("{}:{}#{}", node.name, o, graph.values.size())));
  infer_node(graph, node);
  graph.nodes.push_back(node);
  return node.outputs[0];
}

ValueId add_input(Graph& graph, const std::string& name, DType dtype, Shape shape) {
  const ValueId id = graph.add_value(fmt::format("{}#{}", name, graph.values.size()), dtype);
  graph.value(id).shape = std::move(shape);
  graph.value(id).shape_known = true;
  graph.inputs.push_back(id);
  return id;
}

// Index of the running statistics among those that train; none where they are frozen.
std::optional<std::size_t> find_running(const std::vector<RunningStatistics>& list, ValueId mean) {
  const auto it = std::find_if(list.begin(), list.end(), [&](const RunningStatistics& r) { return r.mean == mean; });
  if (it == list.end()) return {};
  return static_cast<std::size_t>(it - list.begin());
}

class Builder {
 public:
  Builder(const Graph& graph, const InputBinding& shard, const TrainingOptions& options) : options_(options) {
    made_.graph = graph;
    made_.data_inputs = graph.inputs.size();
    const LossPlan loss = loss_of(graph, options.loss);
    loss_kind_ = loss.kind;
    scores_ = loss.prediction;
    samples_ = batch_of(shard);
    InputBinding binding = shard;
    for (const ValueId id : options.trained) binding.shapes.push_back(make_parameter(id));
    made_.parameters = options.trained.size();
    made_.graph.declared_inputs.clear();
    made_.graph.declared_outputs.clear();
    made_.graph.outputs.push_back(scores_);  // keeps it alive
    infer(made_.graph, binding);
    remove_dead_nodes(made_.graph);
  }

  TrainingGraph run() {
    train_batch_norms();
    activate_dropout();
    fuse_batch_norm_activation(made_.graph);
    Graph& g = made_.graph;
    const ValueId prediction = g.outputs[0];
    const Shape scores = g.value(scores_).shape;
    if (scores.empty() || scores[0] != samples_)
      throw Unsupported(
          fmt::format("the loss needs one row of scores for each sample, \"{}\" has shape {}", g.value(scores_).name, to_string(scores)));
    const ValueId target = add_input(g, "target", DType::kF32, scores), weight = add_input(g, "weight", DType::kF32, {samples_});
    if (random_ != kNoValue) g.inputs.push_back(random_);
    made_.has_random = random_ != kNoValue;
    g.outputs.clear();
    Attributes kind;
    kind.set("kind", loss_kind_);
    const ValueId sum = add_node(g, "LossSum", "loss", {scores_, target, weight}, kind);
    keep(sum, {TrainingOutput::Kind::kLoss, 0});
    keep(prediction, {TrainingOutput::Kind::kPrediction, 0});
    const GradientSeed seed{scores_, add_node(g, "LossGrad", "loss/gradient", {scores_, target, weight}, kind)};
    const std::size_t forward_nodes = g.nodes.size() - 1;  // LossGrad begins the backward pass
    const auto gradients = add_gradients(g, {&seed, 1}, options_.trained);
    for (std::size_t p = 0; p < gradients.size(); ++p) {
      if (gradients[p] == kNoValue)
        made_.without_gradient.push_back(p);
      else
        keep(gradients[p], {TrainingOutput::Kind::kGradient, p});
    }
    for (const auto& [moments, running] : moments_) keep(moments, {TrainingOutput::Kind::kMoments, running});
    recompute(g, forward_nodes, options_.recompute);
    remove_dead_nodes(g);
    return std::move(made_);
  }

 private:
  static std::int64_t batch_of(const InputBinding& shard) {
    if (shard.shapes.empty() || shard.shapes[0].empty()) throw Unsupported("the network has no input with a batch dimension");
    return shard.shapes[0][0];
  }

  void keep(ValueId id, TrainingOutput what) {
    made_.graph.outputs.push_back(id);
    made_.outputs.push_back(what);
  }

  Shape make_parameter(ValueId id) {
    Value& v = made_.graph.value(id);
    if (!v.known()) throw InvalidModel(fmt::format("\"{}\" is not a weight of the network", v.name));
    if (v.dtype != DType::kF32) throw Unsupported(fmt::format("weight \"{}\" is {}: only float32 weights are trained", v.name, name_of(v.dtype)));
    v.constant = {};
    v.parameter = true;
    made_.graph.inputs.push_back(id);
    return v.shape;
  }

  // BatchNormalization -> BatchMoments, with sync ShardMoments, BatchNormTraining.
  void train_batch_norms() {
    if (options_.batch_norm == BatchNormMode::kFrozen) return;
    Graph& g = made_.graph;
    const auto layers = batch_norm_layers(g);
    std::vector<Node> nodes = std::move(g.nodes);
    g.nodes.clear();
    auto layer = layers.begin();
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const bool normalises = layer != layers.end() && layer->node == n;
      const auto running = normalises ? find_running(options_.running, layer->statistics.mean) : std::nullopt;
      layer += normalises;
      if (running)
        with_context([&] { return describe(g, nodes[n]); }, [&] { train_batch_norm(nodes[n], *running); });
      else
        g.nodes.push_back(std::move(nodes[n]));
    }
  }

  void train_batch_norm(const Node& node, std::size_t running) {
    Graph& g = made_.graph;
    const bool sync = options_.batch_norm == BatchNormMode::kSync;
    ValueId moments = add_node(g, "BatchMoments", node.name + "/moments", {node.inputs[0]}, {});
    if (sync) moments = add_node(g, "ShardMoments", node.name + "/batch_moments", {moments}, {});
    Node training;
    training.name = node.name;
    training.op = "BatchNormTraining";
    training.inputs = {node.inputs[0], moments, node.inputs[1], node.inputs[2]};
    training.outputs = {node.outputs[0]};
    training.attributes.set("epsilon", node.attributes.real("epsilon", 1e-5f));
    training.attributes.set("synchronised", std::int64_t{sync});
    infer_node(g, training);
    g.nodes.push_back(training);
    moments_.push_back({moments, running});
  }

  // A Dropout of the file drops again: inference left it out.
  void activate_dropout() {
    Graph& g = made_.graph;
    for (std::size_t n = 0; n < g.nodes.size(); ++n) {
      if (g.nodes[n].op != "Dropout") continue;
      const Node node = g.nodes[n];
      const bool has_ratio = node.inputs.size() > 1 && node.inputs[1] != kNoValue && g.value(node.inputs[1]).known();
      const double ratio = has_ratio ? g.value(node.inputs[1]).constant.to_doubles()[0] : 0.5;
      if (ratio <= 0) continue;
      if (node.outputs.size() > 1) throw Unsupported(fmt::format("{} gives its mask away: it cannot be trained through", describe(g, node)));
      if (random_ == kNoValue) {
        random_ = add_input(g, "random", DType::kI64, {3});
        g.inputs.pop_back();  // comes behind the others
      }
      Node training;
      training.name = node.name;
      training.op = "TrainingDropout";
      training.inputs = {node.inputs[0], random_};
      training.outputs = {node.outputs[0]};
      training.attributes.set("rate", static_cast<float>(ratio));
      training.attributes.set("ordinal", dropouts_++);
      infer_node(g, training);
      g.nodes[n] = training;
    }
  }

  const TrainingOptions& options_;
  TrainingGraph made_;
  std::string loss_kind_;
  std::int64_t samples_ = 0, dropouts_ = 0;
  ValueId scores_ = kNoValue, random_ = kNoValue;
  std::vector<std::pair<ValueId, std::size_t>> moments_;  // and the index of their running statistics
};

}  // namespace

std::vector<BatchNormLayer> batch_norm_layers(const Graph& graph) {
  std::vector<BatchNormLayer> layers;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op != "BatchNormalization" || node.inputs.size() < 5) continue;
    const Value &mean = graph.value(node.inputs[3]), &variance = graph.value(node.inputs[4]);
    if (!mean.known() || !variance.known()) continue;
    layers.push_back({.node = n,
                      .statistics = {node.inputs[3], node.inputs[4], mean.constant.size(), node.attributes.real("momentum", 0.9f)},
                      .gamma = node.inputs[1],
                      .beta = node.inputs[2]});
  }
  return layers;
}

LossPlan loss_of(const Graph& graph, const std::string& wanted) {
  using Activation = NetworkEnd::Activation;
  const NetworkEnd end = network_end(graph);
  const std::string loss = wanted == "auto" ? (end.activation == Activation::kSigmoid ? "binary" : "categorical") : wanted;
  if (loss == "mse" || loss == "mae") return {loss, graph.outputs[0]};
  const Activation own = loss == "binary" ? Activation::kSigmoid : Activation::kSoftmax;
  if (end.activation == own || end.activation == Activation::kNone) return {loss, end.logits};
  return {loss + "_probabilities", graph.outputs[0]};
}

TrainingGraph make_training_graph(const Graph& graph, const InputBinding& shard, const TrainingOptions& options) {
  return Builder(graph, shard, options).run();
}

}  // namespace tandem
