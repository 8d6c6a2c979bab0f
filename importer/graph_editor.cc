#include "importer/graph_editor.h"

#include <fmt/format.h>

#include "importer/facts.h"
#include "importer/tensor_wire.h"

namespace tandem {

std::string GraphEditor::unique(std::string_view name) {
  std::string wanted(name.empty() ? "value" : name);
  if (used_.insert(wanted).second) return wanted;
  for (std::size_t n = graph.values.size();; ++n) {
    std::string other = fmt::format("{}#{}", wanted, n);
    if (!reserved_.contains(other) && used_.insert(other).second) return other;
  }
}

ValueId GraphEditor::add_value(std::string_view name, Fact fact) {
  facts_.push_back(fact);
  return graph.add_value(unique(name));
}

ValueId GraphEditor::add_constant(std::string_view name, const Tensor& tensor) { return add_constant(name, tensor, tensor.dtype()); }

ValueId GraphEditor::add_constant(std::string_view name, const Tensor& tensor, DType type) {
  facts_.push_back({type, tensor.rank(), true});
  return graph.add_constant(unique(name), widened(tensor));
}

void GraphEditor::define(ValueId id, const Tensor& tensor) {
  set_fact(id, {tensor.dtype(), tensor.rank(), true});
  Value& value = graph.value(id);
  value.constant = widened(tensor);
  value.dtype = value.constant.dtype();
  value.shape = value.constant.shape();
  value.shape_known = true;
}

void GraphEditor::push(Node node) {
  while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
  while (!node.outputs.empty() && node.outputs.back() == kNoValue) node.outputs.pop_back();
  infer_facts(*this, node);
  graph.nodes.push_back(std::move(node));
}

}  // namespace tandem
