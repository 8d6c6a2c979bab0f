#include "runtime/graph/infer.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "runtime/base/error.h"
#include "runtime/ops/op_table.h"
#include "runtime/plan/evaluate.h"

namespace tandem {
namespace {

// Above this, a folded result must not be larger than what it is made from: a tiny file must not blow up memory.
constexpr std::size_t kFoldLimitBytes = std::size_t{64} << 20;
// A tensor larger than this must not be made out of 65536 times fewer bytes of inputs and constants: networks grow their input tens of times, a
// file that asks for terabytes (ConstantOfShape, Range, Expand, Tile ...) is not one.
constexpr std::size_t kLargeBytes = std::size_t{1} << 30, kMostGrowth = 65536;

void check_counts(const OpDef& op, const Node& node) {
  const auto in = static_cast<std::int64_t>(node.inputs.size()), out = static_cast<std::int64_t>(node.outputs.size());
  if (in < op.min_inputs || (op.max_inputs >= 0 && in > op.max_inputs)) {
    throw InvalidModel(fmt::format("{} takes {} to {} operands, has {}", op.name, op.min_inputs, op.max_inputs, in));
  }
  if (op.max_outputs >= 0 && out > op.max_outputs)
    throw InvalidModel(fmt::format("{} has at most {} outputs, the file names {}", op.name, op.max_outputs, out));
}

bool all_known(const Graph& graph, const Node& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) { return in == kNoValue || graph.value(in).known(); });
}

bool worth_folding(const Graph& graph, const Node& node, const OpDef& op) {
  if (!op.foldable || (!op.cpu && !op.view)) return false;
  if (op.reads_shape_only) return true;
  if (!all_known(graph, node)) return false;
  std::size_t in_bytes = 0, out_bytes = 0;
  for (const ValueId in : node.inputs) in_bytes += in == kNoValue ? 0 : graph.value(in).constant.bytes();
  for (const ValueId out : node.outputs) {
    if (out != kNoValue) out_bytes += static_cast<std::size_t>(elements(graph.value(out).shape)) * size_of(graph.value(out).dtype);
  }
  return out_bytes <= std::max(kFoldLimitBytes, in_bytes);
}

void fold(Graph& graph, const Node& node, const OpDef& op) {
  std::vector<Tensor> results;
  if (op.reads_shape_only) {  // the operand may be computed: only its shape is looked at
    std::vector<TensorDesc> in_descs;
    for (const ValueId in : node.inputs)
      in_descs.push_back(in == kNoValue ? TensorDesc{} : TensorDesc::plain(graph.value(in).dtype, graph.value(in).shape));
    const CpuInfo cpu;
    const Value& out = graph.value(node.outputs[0]);
    results.emplace_back(out.dtype, out.shape);
    CpuContext context(graph, node, in_descs, {TensorDesc::plain(out.dtype, out.shape)}, Precision::kF32, cpu);
    const Kernel kernel = op.cpu(context);
    void* pointer = results[0].mutable_data();
    kernel.stages[0].run({nullptr, &pointer, nullptr, nullptr, nullptr}, 0);
  } else {
    results = evaluate(graph, node);
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue) graph.value(node.outputs[i]).constant = results[i];
  }
}

// Bytes that the network is given: its inputs and constants.
std::size_t given_bytes(const Graph& graph) {
  std::size_t bytes = 0;
  for (const Value& v : graph.values) bytes += v.known() ? v.constant.bytes() : 0;
  for (const ValueId in : graph.inputs) bytes += static_cast<std::size_t>(elements(graph.value(in).shape)) * size_of(graph.value(in).dtype);
  return bytes;
}

void refuse_absurd_size(const Graph& graph, const Node& node, std::size_t given) {
  for (const ValueId out : node.outputs) {
    if (out == kNoValue) continue;
    const Value& v = graph.value(out);
    const std::size_t bytes = static_cast<std::size_t>(elements(v.shape)) * size_of(v.dtype);
    if (bytes <= kLargeBytes || bytes / kMostGrowth <= given) continue;
    throw InvalidModel(fmt::format("its result of shape {} takes {} bytes, made out of {} bytes of inputs and constants: no network grows so",
                                   to_string(v.shape), bytes, given));
  }
}

// Copies the branch that the condition chooses into `graph`; its nodes come out in order.
std::deque<Node> splice_if(Graph& graph, const Node& node) {
  if (node.inputs.empty() || node.inputs[0] == kNoValue || !graph.value(node.inputs[0]).known()) {
    throw Unsupported("the condition is computed from data; only conditions that are constant or graph inputs are supported");
  }
  const Tensor& condition = graph.value(node.inputs[0]).constant;
  if (condition.dtype() != DType::kBool || condition.size() != 1) throw InvalidModel("the condition must be one bool");
  const auto branch = node.attributes.graph(condition.as<bool>()[0] ? "then_branch" : "else_branch");
  if (branch->outputs.size() < node.outputs.size())
    throw InvalidModel(fmt::format("the branch has {} outputs, the node {}", branch->outputs.size(), node.outputs.size()));
  if (branch->inputs.size() + 1 != node.inputs.size()) throw InvalidModel("the branch's outer values and the node's operands differ in number");
  std::vector<ValueId> map(branch->values.size(), kNoValue);
  for (std::size_t i = 0; i < branch->inputs.size(); ++i) map[static_cast<std::size_t>(branch->inputs[i])] = node.inputs[i + 1];
  for (std::size_t v = 0; v < branch->values.size(); ++v) {
    if (map[v] != kNoValue) continue;
    graph.values.push_back(branch->values[v]);
    graph.values.back().name = fmt::format("{}/{}#{}", node.name, branch->values[v].name, graph.values.size());
    map[v] = static_cast<ValueId>(graph.values.size() - 1);
  }
  std::deque<Node> nodes;
  for (const Node& inner : branch->nodes) {
    nodes.push_back(inner);
    for (auto* ids : {&nodes.back().inputs, &nodes.back().outputs}) {
      for (ValueId& id : *ids) id = id == kNoValue ? kNoValue : map[static_cast<std::size_t>(id)];
    }
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    Node identity;
    identity.name = node.name;
    identity.op = "Identity";
    identity.inputs = {map[static_cast<std::size_t>(branch->outputs[i])]};
    identity.outputs = {node.outputs[i]};
    nodes.push_back(std::move(identity));
  }
  return nodes;
}

void bind_inputs(Graph& graph, const InputBinding& binding) {
  if (binding.shapes.size() != graph.inputs.size())
    throw InvalidData(fmt::format("{} input shapes given, the graph has {} inputs", binding.shapes.size(), graph.inputs.size()));
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    Value& v = graph.value(graph.inputs[i]);
    elements(binding.shapes[i]);
    v.shape = binding.shapes[i];
    v.shape_known = true;
    const auto value = binding.values.find(i);
    if (value != binding.values.end()) v.constant = value->second;
  }
}

}  // namespace

void infer_node(Graph& graph, Node& node) {
  const OpDef& op = need_op(node.op);
  check_counts(op, node);
  InferContext context(graph, node);
  op.infer(context);
}

void infer(Graph& graph, const InputBinding& binding) {
  bind_inputs(graph, binding);
  const std::size_t given = given_bytes(graph);
  std::deque<Node> pending(std::make_move_iterator(graph.nodes.begin()), std::make_move_iterator(graph.nodes.end()));
  graph.nodes.clear();
  while (!pending.empty()) {
    Node node = std::move(pending.front());
    pending.pop_front();
    with_context([&] { return describe(graph, node); },
                 [&] {
                   if (node.op == "If") {
                     auto nodes = splice_if(graph, node);
                     pending.insert(pending.begin(), std::make_move_iterator(nodes.begin()), std::make_move_iterator(nodes.end()));
                     return;
                   }
                   infer_node(graph, node);
                   refuse_absurd_size(graph, node, given);
                   const OpDef& op = need_op(node.op);
                   if (worth_folding(graph, node, op))
                     fold(graph, node, op);
                   else
                     graph.nodes.push_back(std::move(node));
                 });
  }
}

void fold_constants(Graph& graph) {
  for (Node& node : graph.nodes) {
    const OpDef* op = find_op(node.op);
    if (!op || !op->foldable || op->reads_shape_only || !all_known(graph, node)) continue;
    with_context([&] { return describe(graph, node); },
                 [&] {
                   infer_node(graph, node);
                   if (!worth_folding(graph, node, *op)) return;
                   fold(graph, node, *op);
                   node.op.clear();
                 });
  }
  std::erase_if(graph.nodes, [](const Node& n) { return n.op.empty(); });
}

std::optional<InputBinding> declared_binding(const Graph& graph, std::int64_t batch) {
  InputBinding binding;
  for (const Declared& d : graph.declared_inputs) {
    if (!d.shape_known) return {};
    Shape shape = d.shape;
    if (!shape.empty() && shape[0] < 0) shape[0] = batch;
    if (std::any_of(shape.begin(), shape.end(), [](std::int64_t dim) { return dim < 0; })) return {};
    binding.shapes.push_back(std::move(shape));
  }
  return binding;
}

std::optional<Graph> inferred(const Graph& graph, std::int64_t batch) {
  const auto binding = declared_binding(graph, batch);
  if (!binding) return {};
  try {
    Graph copy = graph;
    infer(copy, *binding);
    return copy;
  } catch (const Error&) {
    return {};
  }
}

std::vector<std::size_t> steering_inputs(const Graph& graph) {
  const auto producer = producers(graph);
  std::vector<char> seen(graph.values.size(), 0);
  std::vector<ValueId> stack;
  for (const Node& node : graph.nodes) {
    const OpDef* op = find_op(node.op);
    const std::uint32_t host = node.op == "If" ? 1u : op ? op->host_inputs : 0u;
    for (std::size_t i = 0; i < node.inputs.size() && i < 32; ++i) {
      if ((host >> i & 1) && node.inputs[i] != kNoValue) stack.push_back(node.inputs[i]);
    }
  }
  while (!stack.empty()) {
    const ValueId id = stack.back();
    stack.pop_back();
    if (seen[static_cast<std::size_t>(id)]) continue;
    seen[static_cast<std::size_t>(id)] = 1;
    const auto from = producer[static_cast<std::size_t>(id)];
    if (from < 0) continue;
    const Node& node = graph.nodes[static_cast<std::size_t>(from)];
    const OpDef* op = find_op(node.op);
    if (!op || !op->foldable || op->reads_shape_only) continue;
    for (const ValueId in : node.inputs) {
      if (in != kNoValue) stack.push_back(in);
    }
  }
  std::vector<std::size_t> steering;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& v = graph.value(graph.inputs[i]);
    const bool small = !v.shape_known || v.shape.size() <= 1;  // an image that decides shapes is data-dependent: refused by infer()
    if (seen[static_cast<std::size_t>(graph.inputs[i])] && small) steering.push_back(i);
  }
  return steering;
}

}  // namespace tandem
