#include "models/dense_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/graph/infer.h"

namespace tandem::models {
namespace {

const Node* maker(const Graph& graph, const std::vector<std::int32_t>& makers, ValueId value) {
  const std::int32_t n = value == kNoValue ? -1 : makers[static_cast<std::size_t>(value)];
  return n < 0 ? nullptr : &graph.nodes[static_cast<std::size_t>(n)];
}

bool is_one_of(const Node& node, std::initializer_list<const char*> ops) {
  return std::any_of(ops.begin(), ops.end(), [&](const char* op) { return node.op == op; });
}

// Operators that keep the order of elements and have one operand that is data.
bool keeps_order(const Node& node) {
  return is_one_of(node, {"Identity", "Dropout", "Cast", "Relu", "LeakyRelu", "Elu", "Selu", "Clip", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid",
                          "Gelu", "Softplus"});
}

}  // namespace

std::optional<Shape> flattened_shape(const Graph& graph, const Node& product) {
  const auto makers = producers(graph);
  const Node* node = maker(graph, makers, product.inputs[0]);
  while (node && keeps_order(*node)) node = maker(graph, makers, node->inputs[0]);
  if (!node || !is_one_of(*node, {"Flatten", "Reshape", "Squeeze"})) return std::nullopt;
  const ValueId source = node->inputs[0];
  const Node* before = maker(graph, makers, source);
  while (before && keeps_order(*before)) before = maker(graph, makers, before->inputs[0]);
  if (!before) return std::nullopt;  // a graph input, as it is
  if (is_one_of(*before, {"GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "ReduceMax", "Gemm", "MatMul", "Flatten", "Reshape", "Squeeze"}))
    return std::nullopt;
  if (before->op == "Transpose") {
    const auto perm = before->attributes.integers("perm", {});
    if (perm.size() >= 3 && perm[0] == 0 && perm.back() == 1) return std::nullopt;  // to NHWC
    throw Unsupported(fmt::format("{}: the rows of its weights follow a transpose that Keras does not have", describe(graph, product)));
  }
  const auto shaped = inferred(graph, 1);
  const std::string& name = graph.value(source).name;
  const Value* value = nullptr;
  if (shaped) {
    for (const Value& v : shaped->values) {
      if (v.name == name && v.shape_known) value = &v;
    }
  }
  if (!value)
    throw Unsupported(fmt::format("{}: its weights follow a flatten of \"{}\", whose size the file leaves open", describe(graph, product), name));
  if (value->shape.size() < 3) return std::nullopt;
  Shape shape(value->shape.begin() + 1, value->shape.end());
  if (elements(std::span(shape).subspan(1)) == 1) return std::nullopt;
  return shape;
}

}  // namespace tandem::models
