#include "importer/graph_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "importer/declared.h"
#include "importer/limits.h"
#include "importer/newer_fields.h"
#include "importer/rules.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem {
namespace {

// Operators whose further outputs are optional: those that nobody reads are left out, and the operator may then be simpler.
bool drops_unread(std::string_view op) { return op == "BatchNormalization" || op == "Dropout" || op == "MaxPool" || op == "LayerNormalization"; }

}  // namespace

GraphBuilder::GraphBuilder(const ModelFile& file, AttributeReader& attributes, Notes& notes, GraphBuilder* parent)
    : file_(file), attributes_(attributes), notes_(notes), parent_(parent) {
  scope_.opsets = parent ? parent->scope_.opsets : &file.opsets;
  scope_.bound = parent ? parent->scope_.bound : nullptr;
}

void GraphBuilder::build(const onnx::GraphProto& proto) {
  editor_.graph.name = proto.name();
  std::unordered_set<std::string_view> initializers, given;
  std::vector<TensorFields> fields;
  for (const auto& stub : proto.initializer()) {
    const TensorFields f = file_.tensor_fields(stub);
    if (f.name.empty()) throw InvalidModel("an initializer has no name");
    if (!initializers.insert(f.name).second) throw InvalidModel(fmt::format("initializer {} is defined twice", quote(f.name)));
  }
  for (const auto& sparse : proto.sparse_initializer()) {
    const TensorFields f = file_.tensor_fields(sparse.values());
    if (!initializers.insert(f.name).second) throw InvalidModel(fmt::format("initializer {} is defined twice", quote(f.name)));
  }
  given = initializers;
  for (const auto& input : proto.input()) given.insert(input.name());
  for (const auto& node : proto.node()) {
    for (const auto& name : node.output()) refuse_shadowing(name);
  }
  for (const std::string_view name : given) refuse_shadowing(name);
  NodeOrder order = order_nodes(proto.node(), given);
  for (const auto& names : {given, order.made}) {
    for (const std::string_view name : names) editor_.reserve_name(name);
  }
  for (const auto& output : proto.output()) order.read.insert(output.name());
  add_inputs(proto, initializers);
  add_initializers(proto);
  add_nodes(order);
  add_outputs(proto);
}

void GraphBuilder::add_inputs(const onnx::GraphProto& proto, const std::unordered_set<std::string_view>& initializers) {
  for (const auto& input : proto.input()) {
    if (initializers.contains(input.name())) continue;  // IR 3 lists weights among the inputs
    if (parent_) throw Unsupported(fmt::format("a branch of If has an input of its own, {}", quote(input.name())));
    if (input.name().empty()) throw InvalidModel("a graph input has no name");
    Graph& graph = editor_.graph;
    if (graph.inputs.size() >= limits::kGraphInputs) throw InvalidModel(fmt::format("the graph has more than {} inputs", limits::kGraphInputs));
    const Declared declared = read_declared(input, "input");
    if (declared.dtype == DType::kNone) throw InvalidModel(fmt::format("graph input {} has no element type", quote(input.name())));
    const ValueId id =
        editor_.add_value(input.name(), {declared.dtype, declared.shape_known ? static_cast<std::int64_t>(declared.shape.size()) : -1});
    if (!scope_.names.emplace(input.name(), id).second) throw InvalidModel(fmt::format("graph input {} is defined twice", quote(input.name())));
    Value& value = graph.value(id);
    value.dtype = declared.dtype == DType::kF16 || declared.dtype == DType::kBF16 ? DType::kF32 : declared.dtype;
    value.shape_known = declared.shape_known;
    value.shape = declared.shape;
    graph.inputs.push_back(id);
    graph.declared_inputs.push_back(declared);
  }
}

void GraphBuilder::add_initializers(const onnx::GraphProto& proto) {
  for (const auto& stub : proto.initializer()) {
    const std::string name(file_.tensor_fields(stub).name);
    scope_.names.emplace(name, editor_.add_constant(name, attributes_.tensor(stub)));
  }
  for (const auto& sparse : proto.sparse_initializer()) {
    const std::string name(file_.tensor_fields(sparse.values()).name);
    scope_.names.emplace(name, editor_.add_constant(name, attributes_.sparse_tensor(sparse)));
  }
}

void GraphBuilder::add_outputs(const onnx::GraphProto& proto) {
  if (static_cast<std::size_t>(proto.output_size()) > limits::kGraphInputs)
    throw InvalidModel(fmt::format("the graph has more than {} outputs", limits::kGraphInputs));
  if (proto.output_size() == 0) throw InvalidModel("the graph has no outputs");
  for (const auto& output : proto.output()) {
    const ValueId id = resolve(output.name());
    if (id == kNoValue) throw InvalidModel(fmt::format("graph output {} is no graph input, initializer or output of a node", quote(output.name())));
    editor_.graph.outputs.push_back(id);
    editor_.graph.declared_outputs.push_back(parent_ ? Declared{} : read_declared(output, "output"));
  }
}

void GraphBuilder::add_nodes(const NodeOrder& order) {
  for (const onnx::NodeProto* proto : order.nodes) {
    with_context([&] { return describe(*proto); }, [&] { add_node(*proto, order); });
  }
}

void GraphBuilder::add_node(const onnx::NodeProto& proto, const NodeOrder& order) {
  if (editor_.graph.nodes.size() > limits::kNodes * 8) throw InvalidModel("the graph has too many nodes");
  if (const Function* function = file_.function_of(proto)) return inline_function(proto, *function);
  if (proto.op_type() == "If") return add_if(proto);
  add_operator(proto, order);
}

std::vector<ValueId> GraphBuilder::operands(const onnx::NodeProto& proto) {
  std::vector<ValueId> ids;
  for (const auto& name : proto.input()) {
    ids.push_back(name.empty() ? kNoValue : resolve(name));
    const bool left_out = name.empty() || scope_.names.contains(name);  // an input of the function that the call leaves out
    if (ids.back() == kNoValue && !left_out)
      throw InvalidModel(fmt::format("reads {}, which is no graph input, initializer or output of a node", quote(name)));
  }
  while (!ids.empty() && ids.back() == kNoValue) ids.pop_back();
  return ids;
}

ValueId GraphBuilder::add_output(const std::string& name) {
  const ValueId id = editor_.add_value(scope_.prefix + name);
  scope_.names.emplace(name, id);
  return id;
}

void GraphBuilder::add_operator(const onnx::NodeProto& proto, const NodeOrder& order) {
  Node node;
  node.name = scope_.prefix + proto.name();
  node.op = proto.op_type();
  node.attributes = attributes_.read(proto, scope_.bound);
  node.inputs = operands(proto);
  for (int i = 0; i < proto.output_size(); ++i) {
    const std::string& name = proto.output(i);
    const bool left_out = name.empty() || (i > 0 && drops_unread(node.op) && !order.read.contains(name));
    node.outputs.push_back(left_out ? kNoValue : add_output(name));
  }
  record_metadata(proto, node);
  node.attributes.erase("consumed_inputs");  // a hint for in-place execution, long gone
  NodeRewrite rewrite(editor_, std::move(node), scope_.opsets->onnx, file_.options);
  const OperatorForm* form = find_form(proto.op_type());
  if (form && form->rewrite) form->rewrite(rewrite);
  refuse_unknown_attributes(rewrite.node, rewrite.opset);
  for (const std::string& note : rewrite.notes) notes_.add(fmt::format("{}: {}", proto.op_type(), note), describe(proto));
  rewrite.finish();
}

void GraphBuilder::add_if(const onnx::NodeProto& proto) {
  Node node;
  node.name = scope_.prefix + proto.name();
  node.op = "If";
  node.inputs = operands(proto);
  if (node.inputs.size() != 1) throw InvalidModel("If takes one operand, the condition");
  std::vector<std::pair<std::string, GraphBuilder>> branches;
  branches.reserve(2);
  for (const auto& attribute : proto.attribute()) {
    if (!attribute.has_g() || (attribute.name() != "then_branch" && attribute.name() != "else_branch")) continue;
    branches.emplace_back(attribute.name(), GraphBuilder(file_, attributes_, notes_, this));
    if (branches.size() > 2 || (branches.size() == 2 && branches[0].first == branches[1].first)) throw InvalidModel("If has a branch twice");
    with_context([&] { return attribute.name(); }, [&] { branches.back().second.build(attribute.g()); });
  }
  if (branches.size() != 2) throw InvalidModel("If needs then_branch and else_branch");
  // Both branches get the same outer values in the same order (infer.h).
  for (std::size_t b = 0; b < 2; ++b) {
    for (const Capture& c : std::vector<Capture>(branches[b].second.captures())) branches[1 - b].second.capture(c.outer);
  }
  for (const Capture& c : branches[0].second.captures()) node.inputs.push_back(c.outer);
  for (auto& [name, branch] : branches) {
    Graph& graph = branch.editor_.graph;
    if (graph.outputs.size() != static_cast<std::size_t>(proto.output_size()))
      throw InvalidModel(fmt::format("{} has {} outputs, the node {}", name, graph.outputs.size(), proto.output_size()));
    graph.inputs.clear();
    for (std::size_t i = 1; i < node.inputs.size(); ++i) graph.inputs.push_back(branch.capture(node.inputs[i]));
    graph.declared_inputs.resize(graph.inputs.size());
    node.attributes.set(name, std::make_shared<const Graph>(graph));
  }
  for (int i = 0; i < proto.output_size(); ++i) {
    const auto fact = [&](std::size_t b) {
      return branches[b].second.editor_.fact(branches[b].second.editor_.graph.outputs[static_cast<std::size_t>(i)]);
    };
    node.outputs.push_back(proto.output(i).empty() ? kNoValue : add_output(proto.output(i)));
    if (node.outputs.back() == kNoValue) continue;
    editor_.set_fact(node.outputs.back(),
                     {fact(0).type == fact(1).type ? fact(0).type : DType::kNone, fact(0).rank == fact(1).rank ? fact(0).rank : -1});
  }
  record_metadata(proto, node);
  editor_.push(std::move(node));
}

void GraphBuilder::record_metadata(const onnx::NodeProto& proto, const Node& node) {
  if (!file_.options.record) return;
  const auto made = std::find_if(node.outputs.begin(), node.outputs.end(), [](ValueId id) { return id != kNoValue; });
  file_.options.record->add_node(node.name, made == node.outputs.end() ? std::string() : editor_.graph.value(*made).name, metadata_of(proto));
}

Attributes GraphBuilder::call_attributes(const onnx::NodeProto& proto, const Function& function) {
  Attributes bound = attributes_.read(proto, scope_.bound);
  for (const auto& attribute : function.defaults) {
    if (!bound.has(attribute.name())) attributes_.set(bound, attribute);
  }
  return bound;
}

void GraphBuilder::inline_function(const onnx::NodeProto& proto, const Function& function) {
  const onnx::FunctionProto& f = *function.proto;
  const std::vector<ValueId> actual = operands(proto);
  if (proto.input_size() > f.input_size() || proto.output_size() > f.output_size())
    throw InvalidModel(fmt::format("function {} has {} inputs and {} outputs, the call gives {} and {}", quote(f.name()), f.input_size(),
                                   f.output_size(), proto.input_size(), proto.output_size()));
  const Attributes bound = call_attributes(proto, function);
  Scope inner;
  inner.opsets = &function.opsets;
  inner.bound = &bound;
  inner.function = true;
  inner.prefix = scope_.prefix + (proto.name().empty() ? f.name() : proto.name()) + "/";
  if (inner.prefix.size() > limits::kNameBytes) inner.prefix = f.name() + "/";
  std::unordered_set<std::string_view> given;
  for (int i = 0; i < f.input_size(); ++i) {
    inner.names.emplace(f.input(i), static_cast<std::size_t>(i) < actual.size() ? actual[static_cast<std::size_t>(i)] : kNoValue);
    if (!given.insert(f.input(i)).second) throw InvalidModel(fmt::format("function {} has input {} twice", quote(f.name()), quote(f.input(i))));
  }
  NodeOrder order = order_nodes(f.node(), given);
  order.read.insert(f.output().begin(), f.output().end());
  std::swap(scope_, inner);
  add_nodes(order);
  std::vector<ValueId> results;
  for (const auto& name : f.output()) {
    const ValueId id = resolve(name);
    if (id == kNoValue) throw InvalidModel(fmt::format("function {} does not make its output {}", quote(f.name()), quote(name)));
    results.push_back(id);
  }
  std::swap(scope_, inner);
  for (int i = 0; i < proto.output_size(); ++i) {
    if (!proto.output(i).empty()) scope_.names.emplace(proto.output(i), results[static_cast<std::size_t>(i)]);
  }
}

ValueId GraphBuilder::resolve(const std::string& name) {
  const auto found = scope_.names.find(name);
  if (found != scope_.names.end()) return found->second;
  if (scope_.function || !parent_) return kNoValue;
  const ValueId outer = parent_->resolve(name);
  if (outer == kNoValue) return kNoValue;
  const Value& value = parent_->editor_.graph.value(outer);
  const ValueId inner = value.known() ? editor_.add_constant(name, value.constant, parent_->editor_.fact(outer).type) : capture(outer);
  scope_.names.emplace(name, inner);
  return inner;
}

ValueId GraphBuilder::capture(ValueId outer) {
  for (const Capture& c : captures_) {
    if (c.outer == outer) return c.inner;
  }
  const ValueId inner = editor_.add_value(parent_->editor_.graph.value(outer).name, parent_->editor_.fact(outer));
  captures_.push_back({outer, inner});
  return inner;
}

void GraphBuilder::refuse_shadowing(std::string_view name) const {
  for (const GraphBuilder* outer = parent_; outer; outer = outer->parent_) {
    if (outer->scope_.names.contains(std::string(name)))
      throw InvalidModel(fmt::format("value {} of a branch has the name of a value outside; every name must be used once", quote(name)));
    if (outer->scope_.function) return;
  }
}

}  // namespace tandem
