// Constant (every kind of value is a constant of the graph), ConstantOfShape (half precision widened), and Identity of a constant: a name of
// its own for the same bytes, as exporters write it for equal weights.
#include "importer/rules.h"
#include "importer/tensor_wire.h"
#include "runtime/base/error.h"

namespace tandem {

void rewrite_constant(NodeRewrite& c) {
  const Attributes& a = c.attributes();
  if (a.has("value")) return c.become_constant(a.tensor("value"));
  if (a.has("sparse_value")) return c.become_constant(a.tensor("sparse_value"));
  if (a.has("value_float")) return c.become_constant(Tensor::scalar<float>(a.real("value_float")));
  if (a.has("value_int")) return c.become_constant(Tensor::scalar<std::int64_t>(a.integer("value_int")));
  if (a.has("value_floats")) {
    const auto values = a.reals("value_floats");
    return c.become_constant(Tensor::of<float>({static_cast<std::int64_t>(values.size())}, std::span<const float>(values)));
  }
  if (a.has("value_ints")) return c.become_constant(Tensor::ints(a.integers("value_ints")));
  if (a.has("value_string") || a.has("value_strings")) throw Unsupported("a Constant of strings is not supported");
  throw InvalidModel("a Constant needs one of value, sparse_value, value_float, value_floats, value_int, value_ints");
}

void rewrite_constant_of_shape(NodeRewrite& c) {
  if (!c.attributes().has("value")) return;
  const Tensor value = c.attributes().tensor("value");
  c.set_output_type(value.dtype());
  c.attributes().set("value", widened(value));
}

void rewrite_identity(NodeRewrite& c) {
  const Tensor* known = c.constant(0);
  if (!known) return;
  const DType type = c.type(0);
  c.become_constant(Tensor(*known));
  c.set_output_type(type);
}

}  // namespace tandem
