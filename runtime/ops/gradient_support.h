// Short forms for OpDef::gradient functions.
#pragma once

#include "runtime/graph/gradient.h"
#include "runtime/ops/op.h"

namespace tandem {

// The operator with its backward rule.
constexpr OpDef with_gradient(OpDef op, void (*gradient)(GradientContext&)) {
  op.gradient = gradient;
  return op;
}

inline Attributes attribute(std::string name, AttributeValue value) {
  Attributes a;
  a.set(std::move(name), std::move(value));
  return a;
}

// A scalar of v's type.
inline ValueId scalar_like(GradientContext& c, ValueId v, double value) {
  return c.constant(c.dtype(v) == DType::kF64 ? Tensor::scalar(value) : Tensor::scalar(static_cast<float>(value)));
}
// A tensor of zeros of v's type.
inline ValueId zeros(GradientContext& c, ValueId v, Shape shape) { return c.constant(Tensor(c.dtype(v), std::move(shape))); }
// v where the condition holds, 0 elsewhere; and the other way round.
inline ValueId only_where(GradientContext& c, ValueId condition, ValueId v) { return c.emit("Where", {condition, v, scalar_like(c, v, 0)}); }
inline ValueId only_else(GradientContext& c, ValueId condition, ValueId v) { return c.emit("Where", {condition, scalar_like(c, v, 0), v}); }

}  // namespace tandem
