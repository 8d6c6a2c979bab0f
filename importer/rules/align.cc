#include "importer/rules/align.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace tandem {
namespace {

Attributes with(std::string name, AttributeValue value) {
  Attributes a;
  a.set(std::move(name), std::move(value));
  return a;
}

// Reshape(b, Concat(Shape(b), ones)) with as many ones as fit.
ValueId align_by_shape(NodeRewrite& c, std::size_t i, std::int64_t axis) {
  const ValueId b = c.input(i), shape_b = c.emit("Shape", {b});
  const ValueId rank_b = c.emit("Size", {shape_b});
  const ValueId end =
      axis < 0 ? c.add_constant(Tensor::scalar<std::int64_t>(-axis), "axis")
               : c.emit("Sub", {c.emit("Size", {c.emit("Shape", {c.input(0)})}), c.add_constant(Tensor::scalar<std::int64_t>(axis), "axis")});
  const ValueId count = c.emit("Unsqueeze", {c.emit("Sub", {end, rank_b}), c.ints({0}, "axes")});
  const std::int64_t one = 1;
  const ValueId ones = c.emit("ConstantOfShape", {count}, with("value", Tensor::ints({&one, 1})));
  return c.emit("Reshape", {b, c.emit("Concat", {shape_b, ones}, with("axis", std::int64_t{0}))});
}

}  // namespace

void align_operand(NodeRewrite& c, std::size_t i, std::int64_t axis) {
  const std::int64_t rank_a = c.rank(0), rank_b = c.rank(i);
  if (rank_b < 0 || (rank_a < 0 && axis >= 0)) {
    c.set_input(i, align_by_shape(c, i, axis));
    return;
  }
  const std::int64_t ones = (axis < 0 ? -axis : rank_a - axis) - rank_b;
  if (ones < 0) throw InvalidModel(fmt::format("an operand of rank {} does not fit at axis {} of one of rank {}", rank_b, axis, rank_a));
  if (ones == 0) return;
  if (const Tensor* known = c.constant(i)) {
    Shape shape = known->shape();
    shape.insert(shape.end(), static_cast<std::size_t>(ones), 1);
    c.set_input(i, c.add_constant(known->reshaped(shape), "aligned"));
    return;
  }
  std::vector<std::int64_t> axes;
  for (std::int64_t k = 0; k < ones; ++k) axes.push_back(rank_b + k);
  c.set_input(i, c.emit("Unsqueeze", {c.input(i), c.ints(axes, "axes")}));
}

}  // namespace tandem
