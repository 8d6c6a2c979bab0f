#include "importer/node_rewrite.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace tandem {

std::string NodeRewrite::hint_name(std::string_view hint) const {
  std::string base = node.name;
  for (std::size_t i = 0; base.empty() && i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue) base = editor_.graph.value(node.outputs[i]).name;
  }
  return fmt::format("{}/{}", base, hint);
}

ValueId NodeRewrite::input(std::size_t i) const {
  if (!has_input(i)) throw InvalidModel(fmt::format("operand {} is required and missing", i));
  return node.inputs[i];
}

const Tensor* NodeRewrite::constant(std::size_t i) const {
  if (!has_input(i)) return nullptr;
  const Value& value = editor_.graph.value(node.inputs[i]);
  return value.known() ? &value.constant : nullptr;
}

void NodeRewrite::set_input(std::size_t i, ValueId value) {
  if (node.inputs.size() <= i) node.inputs.resize(i + 1, kNoValue);
  node.inputs[i] = value;
}

ValueId NodeRewrite::ints(const std::vector<std::int64_t>& values, std::string_view hint) {
  return editor_.add_constant(hint_name(hint), Tensor::ints(values));
}

ValueId NodeRewrite::real(float value, std::string_view hint) {
  if (type(0) == DType::kF64) return editor_.add_constant(hint_name(hint), Tensor::scalar<double>(value));
  return editor_.add_constant(hint_name(hint), Tensor::scalar<float>(value), DType::kNone);
}

ValueId NodeRewrite::add_constant(const Tensor& tensor, std::string_view hint) { return editor_.add_constant(hint_name(hint), tensor); }

ValueId NodeRewrite::emit(std::string_view op, std::vector<ValueId> inputs, Attributes with) {
  Node made;
  made.name = hint_name(op);
  made.op = op;
  made.attributes = std::move(with);
  made.inputs = std::move(inputs);
  const ValueId out = editor_.add_value(made.name);
  made.outputs = {out};
  editor_.push(std::move(made));
  return out;
}

ValueId NodeRewrite::redirect_output(std::size_t i) {
  const ValueId old = node.outputs[i];
  node.outputs[i] = new_value("inner");
  return old;
}

void NodeRewrite::become_constant(const Tensor& tensor) {
  if (has_output(0)) editor_.define(node.outputs[0], tensor);
  node.op.clear();
}

void NodeRewrite::move_ints(std::string_view attribute, std::size_t index, std::int64_t since) {
  if (opset < since && has_input(index))
    throw InvalidModel(
        fmt::format("operand {} ('{}') exists since opset {}; at opset {} '{}' is an attribute", index, attribute, since, opset, attribute));
  if (!attributes().has(attribute)) return;
  if (has_input(index)) throw InvalidModel(fmt::format("'{}' is given as an attribute and as operand {}", attribute, index));
  set_input(index, ints(attributes().integers(attribute), attribute));
  attributes().erase(attribute);
}

void NodeRewrite::finish() {
  const ValueId first = has_output(0) ? node.outputs[0] : kNoValue;
  if (!node.op.empty()) editor_.push(std::move(node));
  for (Node& next : after) editor_.push(std::move(next));
  if (first != kNoValue && output_type_ != DType::kNone) editor_.set_fact(first, {output_type_, editor_.fact(first).rank, editor_.fact(first).fixed});
}

}  // namespace tandem
