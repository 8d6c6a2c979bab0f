#include "tools/trainable_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "models/separate_weights.h"
#include "models/trainable.h"
#include "models/weight_operands.h"
#include "models/weights_map.h"
#include "runtime/base/error.h"
#include "runtime/graph/infer.h"
#include "runtime/graph/network_end.h"
#include "runtime/graph/training.h"
#include "tools/model_inputs.h"

namespace tandem::cli {
namespace {

std::string counted(std::size_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::set<std::string> constant_kernels(const Graph& graph) {
  const models::WeightOperands operands(graph);
  std::set<std::string> names;
  for (const Node& node : graph.nodes) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (operands.role(node, i) == models::WeightRole::kKernel) names.insert(graph.value(node.inputs[i]).name);
    }
  }
  return names;
}

// Values of a constant that scales or shifts channels; 0 where it is none.
std::int64_t channel_values(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 2) return 0;
  for (const ValueId id : node.inputs) {
    if (!graph.value(id).known() || graph.value(id).constant.dtype() != DType::kF32 || graph.value(id).constant.rank() < 3) continue;
    const Shape shape = graph.value(id).constant.shape();
    const std::int64_t n = elements(shape);
    if (n > 1 && std::count_if(shape.begin(), shape.end(), [](std::int64_t d) { return d != 1; }) == 1) return n;
  }
  return 0;
}

// Batch norms that an exporter wrote as Mul and Add by a value for each channel.
std::size_t scales_and_shifts(const Graph& graph) {
  const auto producer = producers(graph);
  std::size_t count = 0;
  for (const Node& node : graph.nodes) {
    if (node.op != "Add" || channel_values(graph, node) == 0) continue;
    for (const ValueId id : node.inputs) {
      const auto from = producer[static_cast<std::size_t>(id)];
      if (from < 0) continue;
      const Node& before = graph.nodes[static_cast<std::size_t>(from)];
      count += before.op == "Mul" && channel_values(graph, before) == channel_values(graph, node);
    }
  }
  return count;
}

std::string batch_norm_text(const Graph& graph) {
  const auto layers = batch_norm_layers(graph);
  const std::size_t scales = scales_and_shifts(graph);
  std::string text = "none: folded into the convolutions, or never there";
  if (!layers.empty()) {
    const auto folded = std::count_if(layers.begin(), layers.end(), [&](const BatchNormLayer& l) { return models::batch_norm_absorbed(graph, l); });
    text = fmt::format("{} kept", layers.size());
    if (folded > 0)
      text += fmt::format(", {} of them with mean 0 and variance 1: an exporter put the statistics into their scale (--bn frozen)", folded);
  }
  if (scales > 0) text += fmt::format("; {} as Mul and Add, whose constants stay as they are", scales);
  return text;
}

std::string dropout_text(const Graph& graph) {
  std::size_t count = 0;
  for (const Node& node : graph.nodes) count += node.op == "Dropout";
  return count > 0 ? fmt::format("{} kept: active in training", count) : "none: exporters leave it out; train --dropout P puts one before the head";
}

std::string batch_text(const Graph& graph) {
  if (has_dynamic_batch(graph)) return "any";
  const std::int64_t n = graph.declared_inputs.empty() || graph.declared_inputs[0].shape.empty() ? 0 : graph.declared_inputs[0].shape[0];
  return fmt::format("fixed at {}: a constant shape or an output holds it; only shards of {} samples can be trained (--batch {}, --shards 1)", n, n,
                     n);
}

std::string head_text(const Graph& graph) {
  const auto head = models::find_head(graph);
  return head ? fmt::format("\"{}\", {} to {}", head->layer, head->inputs, head->classes)
              : "not found (no last Gemm, MatMul or 1x1 Conv with constant weights): other classes and --freeze-backbone are not to be had";
}

std::string loss_text(const Graph& graph) {
  using Activation = NetworkEnd::Activation;
  const Activation a = network_end(graph).activation;
  return a == Activation::kSigmoid ? "binary (ends in a sigmoid)"
                                   : fmt::format("categorical ({})", a == Activation::kSoftmax ? "ends in a softmax" : "ends in scores");
}

std::string names_text(const Graph& graph) {
  try {
    models::parameter_layers(graph);
    return "Keras': training writes weights.h5";
  } catch (const Unsupported& e) {
    return "not Keras': no weights.h5 (" + first_line(e.message()) + ")";
  }
}

// The first thing that stands in the way of a backward pass, found by building one for a batch of two (or the fixed one).
std::string gradient_text(const Graph& graph, const std::vector<models::TrainableArray>& arrays) {
  const auto binding = declared_binding(graph, 2);
  if (!binding) return "not looked at: the size of the images is open";
  TrainingOptions options;
  for (const auto& a : arrays) options.trained.push_back(a.value);
  for (const BatchNormLayer& l : batch_norm_layers(graph)) options.running.push_back(l.statistics);
  try {
    const TrainingGraph made = make_training_graph(graph, *binding, options);
    if (made.without_gradient.empty()) return "reach every parameter";
    return fmt::format("do not reach {} of them, first \"{}\"", made.without_gradient.size(), graph.value(made.without_gradient[0]).name);
  } catch (const Error& e) {
    return "missing: " + first_line(e.what());
  }
}

}  // namespace

std::vector<std::string> repair_for_training(Graph& graph) {
  const auto kernels_before = constant_kernels(graph);
  fold_constants(graph);
  remove_dead_nodes(graph);
  std::size_t made = 0;
  for (const std::string& name : constant_kernels(graph)) made += !kernels_before.contains(name);
  std::vector<std::string> repairs;
  if (made > 0) repairs.push_back(counted(made, "kernel") + " that the file computes from constants: now constants");
  if (const auto copied = models::separate_weights(graph); !copied.empty())
    repairs.push_back(
        fmt::format("{} that the exporter merged: each layer has its own now (first \"{}\")", counted(copied.size(), "weight"), copied[0]));
  return repairs;
}

std::string make_trainable(Graph& graph) {
  const auto repairs = repair_for_training(graph);
  const auto arrays = models::trainable_arrays(graph);
  if (arrays.empty()) throw Unsupported("there is nothing to train: no operator takes a constant as its weights");
  std::int64_t values = 0;
  std::size_t kernels = 0;
  for (const auto& a : arrays) {
    values += graph.value(a.value).constant.size();
    kernels += a.is_kernel;
  }
  std::string text = fmt::format("parameters      {} with {} values, {} of them kernels\n", counted(arrays.size(), "array"), values, kernels);
  for (const std::string& repair : repairs) text += fmt::format("repaired        {}\n", repair);
  for (const std::string& note : graph.origin.notes) text += fmt::format("importer        {}\n", note);
  text += fmt::format("gradients       {}\nbatch norm      {}\ndropout         {}\n", gradient_text(graph, arrays), batch_norm_text(graph),
                      dropout_text(graph));
  text += fmt::format("batch           {}\nhead            {}\nloss            {}\nnames           {}\n", batch_text(graph), head_text(graph),
                      loss_text(graph), names_text(graph));
  return text;
}

}  // namespace tandem::cli
