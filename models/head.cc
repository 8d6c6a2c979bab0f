#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/trainable.h"
#include "runtime/base/error.h"
#include "runtime/base/philox.h"
#include "runtime/graph/infer.h"
#include "runtime/graph/network_end.h"

namespace tandem::models {
namespace {

constexpr int kHops = 8;  // nodes between the head and the output: activation, reshapes, casts

bool is_weight(const Graph& graph, ValueId id) { return id != kNoValue && graph.value(id).known() && graph.value(id).dtype == DType::kF32; }

ValueId operand(const Node& node, std::size_t i) { return i < node.inputs.size() ? node.inputs[i] : kNoValue; }

std::optional<Head> head_at(const Graph& graph, const Node& node) {
  const ValueId kernel = operand(node, 1);
  if (!is_weight(graph, kernel)) return {};
  const Shape shape = graph.value(kernel).constant.shape();
  Head head{.layer = {}, .kernel = kernel, .bias = operand(node, 2), .features = node.inputs[0]};
  if (node.op == "MatMul" || node.op == "Gemm") {
    if (shape.size() != 2) return {};
    head.classes_first = node.op == "Gemm" && node.attributes.integer("transB", 0) != 0;
  } else if (node.op == "Conv") {
    if (std::any_of(shape.begin() + 2, shape.end(), [](std::int64_t d) { return d != 1; }) || node.attributes.integer("group", 1) != 1) return {};
    head.classes_first = true;
  } else {
    return {};
  }
  head.classes = shape[head.classes_first ? 0 : 1];
  head.inputs = shape[head.classes_first ? 1 : 0];
  if (head.bias != kNoValue && !is_weight(graph, head.bias)) return {};
  return head;
}

// `values` [inputs, classes] in the order of the head's kernel.
Tensor arranged(const Head& head, const Tensor& values, Shape shape) {
  Tensor out(DType::kF32, std::move(shape));
  const auto from = values.as<float>();
  const auto to = out.as_mutable<float>();
  for (std::int64_t i = 0; i < head.inputs; ++i) {
    const std::int64_t classes = values.shape()[1];
    for (std::int64_t c = 0; c < classes; ++c)
      to[static_cast<std::size_t>(head.classes_first ? c * head.inputs + i : i * classes + c)] = from[static_cast<std::size_t>(i * classes + c)];
  }
  return out;
}

}  // namespace

std::optional<Head> find_head(const Graph& graph) {
  ValueId id = network_end(graph).logits, bias = kNoValue;
  for (int hops = 0; hops < kHops; ++hops) {
    const Node* node = producer_of(graph, id);
    if (!node || node->inputs.empty()) return {};
    if (node->op == "Add" && node->inputs.size() == 2) {
      const std::size_t constant = is_weight(graph, node->inputs[1]) ? 1 : 0;
      if (!is_weight(graph, node->inputs[constant])) return {};
      bias = node->inputs[constant];
      id = node->inputs[1 - constant];
      continue;
    }
    if (auto head = head_at(graph, *node)) {
      if (bias != kNoValue) {
        if (head->bias != kNoValue) return {};
        head->bias = bias;
      }
      for (const TrainableArray& a : trainable_arrays(graph)) {
        if (a.value == head->kernel) head->layer = a.layer;
      }
      return head;
    }
    id = node->inputs[0];
  }
  return {};
}

void replace_head(Graph& graph, const Head& head, const Tensor& kernel, const Tensor& bias) {
  if (kernel.dtype() != DType::kF32 || kernel.rank() != 2 || kernel.shape()[0] != head.inputs)
    throw InvalidModel(fmt::format("the new head's kernel must be float32 [{}, classes], is {} {}", head.inputs, name_of(kernel.dtype()),
                                   to_string(kernel.shape())));
  const std::int64_t classes = kernel.shape()[1];
  if (bias && bias.shape() != Shape{classes})
    throw InvalidModel(fmt::format("the new head's bias must have {} values, has shape {}", classes, to_string(bias.shape())));
  Shape kernel_shape = graph.value(head.kernel).constant.shape();
  kernel_shape[head.classes_first ? 0 : 1] = classes;
  const auto put = [&](ValueId id, Tensor values) {
    graph.value(id).shape = values.shape();
    graph.value(id).constant = std::move(values);
  };
  put(head.kernel, arranged(head, kernel, kernel_shape));
  if (head.bias != kNoValue) {
    Shape shape = graph.value(head.bias).constant.shape();
    for (std::int64_t& d : shape) d = d == head.classes ? classes : d;
    put(head.bias, bias ? bias.reshaped(shape) : Tensor(DType::kF32, shape));
  }
  for (Declared& d : graph.declared_outputs) {
    for (std::size_t i = 1; i < d.shape.size(); ++i) d.shape[i] = d.shape[i] == head.classes ? classes : d.shape[i];
  }
  for (const ValueId out : graph.outputs) graph.value(out).shape_known = false;
  Graph copy = graph;
  if (const auto binding = declared_binding(copy, 2)) {
    try {
      infer(copy, *binding);
    } catch (const Error& e) {
      throw Unsupported(fmt::format("the network cannot take {} classes: what follows its head \"{}\" holds on to {}: {}", classes, head.layer,
                                    head.classes, e.what()));
    }
  }
}

Tensor glorot_uniform(std::int64_t inputs, std::int64_t classes, std::uint64_t seed) {
  Tensor values(DType::kF32, {inputs, classes});
  const auto limit = static_cast<float>(std::sqrt(6.0 / static_cast<double>(inputs + classes)));
  PhiloxStream draws(seed, Purpose::kInitial, 0, 0);
  for (float& v : values.as_mutable<float>()) v = draws.uniform(-limit, limit);
  return values;
}

void replace_activation(Graph& graph, const char* op) {
  const NetworkEnd end = network_end(graph);
  if (end.node < 0) throw Unsupported("the network ends in neither a Softmax nor a Sigmoid");
  Node& node = graph.nodes[static_cast<std::size_t>(end.node)];
  node.op = op;
  node.inputs = {end.logits};
  node.attributes = {};
  remove_dead_nodes(graph);  // Exp and ReduceSum of a softmax that is written out
}

void add_dropout(Graph& graph, const Head& head, double rate) {
  Node drop;
  drop.name = graph.value(head.kernel).name + "/dropout";
  drop.op = "Dropout";
  drop.inputs = {head.features, graph.add_constant(drop.name + "/ratio", Tensor::scalar(static_cast<float>(rate)))};
  drop.outputs = {graph.add_value(drop.name + ":0", DType::kF32)};
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    if (node.inputs.size() < 2 || node.inputs[1] != head.kernel) continue;
    node.inputs[0] = drop.outputs[0];
    graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(n), std::move(drop));
    return;
  }
}

}  // namespace tandem::models
