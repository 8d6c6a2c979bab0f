// Builds small graphs in tests.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace tandem::test {

class GraphBuilder {
 public:
  // -1: dynamic.
  ValueId input(const std::string& name, DType dtype, Shape shape) {
    const ValueId id = graph.add_value(name, dtype);
    graph.value(id).shape = shape;
    graph.value(id).shape_known = true;
    graph.inputs.push_back(id);
    graph.declared_inputs.push_back({.dtype = dtype, .shape_known = true, .shape = std::move(shape), .symbols = {}});
    return id;
  }
  ValueId constant(const std::string& name, Tensor t) { return graph.add_constant(name, std::move(t)); }
  // One output, named as the node.
  ValueId node(const std::string& name, const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    Node n;
    n.name = name;
    n.op = op;
    n.attributes = std::move(attributes);
    n.inputs = std::move(inputs);
    n.outputs = {graph.add_value(name + ":0")};
    graph.nodes.push_back(std::move(n));
    return graph.nodes.back().outputs[0];
  }
  void output(ValueId id) {
    graph.outputs.push_back(id);
    graph.declared_outputs.push_back({.dtype = DType::kNone, .shape_known = false, .shape = {}, .symbols = {}});
  }
  Graph graph;
};

inline Attributes attributes(std::initializer_list<std::pair<std::string, AttributeValue>> list) {
  Attributes a;
  for (const auto& [name, value] : list) a.set(name, value);
  return a;
}

}  // namespace tandem::test
