// Comparisons, boolean operators, Where, IsNaN and IsInf.
#include <cmath>

#include "runtime/ops/families.h"
#include "runtime/ops/gradient_support.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

constexpr DType kBoolOnly[] = {DType::kBool};

// Results are u8 0 or 1, the compute type of bool.
struct EqualOp {
  template <class T>
  std::uint8_t operator()(T a, T b) const {
    return a == b;
  }
};
struct LessOp {
  template <class T>
  std::uint8_t operator()(T a, T b) const {
    return a < b;
  }
};
struct LessOrEqualOp {
  template <class T>
  std::uint8_t operator()(T a, T b) const {
    return a <= b;
  }
};
struct GreaterOp {
  template <class T>
  std::uint8_t operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterOrEqualOp {
  template <class T>
  std::uint8_t operator()(T a, T b) const {
    return a >= b;
  }
};
struct AndOp {
  std::uint8_t operator()(std::uint8_t a, std::uint8_t b) const { return a & b; }
};
struct OrOp {
  std::uint8_t operator()(std::uint8_t a, std::uint8_t b) const { return a | b; }
};
struct XorOp {
  std::uint8_t operator()(std::uint8_t a, std::uint8_t b) const { return a ^ b; }
};
struct NotOp {
  std::uint8_t operator()(std::uint8_t a) const { return a == 0; }
};
struct IsNanOp {
  template <class T>
  std::uint8_t operator()(T a) const {
    return a != a;
  }
};

template <class Op>
Kernel compare(CpuContext& c) {
  MapBody body;
  dispatch_compute(c.in[0].dtype, [&](auto tag) { body = binary_body<Op, decltype(tag), std::uint8_t>; });
  return map_kernel("plain", c.out[0], c.in, std::move(body));
}

template <class Op>
Kernel boolean(CpuContext& c) {
  return map_kernel("plain", c.out[0], c.in, binary_body<Op, std::uint8_t>);
}

Kernel logical_not(CpuContext& c) { return map_kernel("plain", c.out[0], c.in, unary_body<NotOp, std::uint8_t>); }

Kernel is_nan(CpuContext& c) {
  const bool wide = c.in[0].dtype == DType::kF64;
  return map_kernel("plain", c.out[0], c.in, wide ? unary_body<IsNanOp, double, std::uint8_t> : unary_body<IsNanOp, float, std::uint8_t>);
}

struct IsInfParams {
  bool negative, positive;
};

void infer_is_inf(InferContext& c) {
  infer_unary(c, kFloatTypes, DType::kBool);
  c.set_params(IsInfParams{c.attributes().integer("detect_negative", 1) != 0, c.attributes().integer("detect_positive", 1) != 0});
}

template <class T>
MapBody is_inf_body(IsInfParams p) {
  return [p](const void* const* in, void* out, std::int64_t n) {
    const auto test = [p](T v) { return static_cast<std::uint8_t>(std::isinf(v) && (v < 0 ? p.negative : p.positive)); };
    map_loop(test, static_cast<const T*>(in[0]), static_cast<std::uint8_t*>(out), n);
  };
}

Kernel is_inf(CpuContext& c) {
  const auto p = c.params<IsInfParams>();
  return map_kernel("plain", c.out[0], c.in, c.in[0].dtype == DType::kF64 ? is_inf_body<double>(p) : is_inf_body<float>(p));
}

// Only the width of the elements matters.
template <class T>
void where_body(const void* const* in, void* out, std::int64_t n) {
  const auto* condition = static_cast<const std::uint8_t*>(in[0]);
  const auto *x = static_cast<const T*>(in[1]), *y = static_cast<const T*>(in[2]);
  auto* z = static_cast<T*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) z[i] = condition[i] ? x[i] : y[i];
}

Kernel where(CpuContext& c) {
  MapBody body;
  dispatch_width(size_of(compute_type(c.out[0].dtype)), [&](auto tag) { body = where_body<decltype(tag)>; });
  return map_kernel("plain", c.out[0], c.in, std::move(body));
}

void infer_where(InferContext& c) {
  c.expect_dtype(0, kBoolOnly);
  c.expect_same_dtype(1, 2);
  c.set_output(0, c.dtype(1), broadcast(broadcast(c.shape(0), c.shape(1)), c.shape(2)));
}

void infer_equal(InferContext& c) { infer_broadcast(c, kAllTypes, DType::kBool); }
void infer_compare(InferContext& c) { infer_broadcast(c, kNumericTypes, DType::kBool); }
void infer_boolean(InferContext& c) { infer_broadcast(c, kBoolOnly); }
void infer_not(InferContext& c) { infer_unary(c, kBoolOnly); }
void infer_is_nan(InferContext& c) { infer_unary(c, kFloatTypes, DType::kBool); }

void where_gradient(GradientContext& c) {
  if (c.wants(1)) c.set_summed(1, only_where(c, c.input(0), c.dy()));
  if (c.wants(2)) c.set_summed(2, only_else(c, c.input(0), c.dy()));
}

}  // namespace

std::span<const OpDef> logic_ops() {
  static const OpDef ops[] = {
      pointwise_op("Equal", 2, 2, infer_equal, compare<EqualOp>),
      pointwise_op("Less", 2, 2, infer_compare, compare<LessOp>),
      pointwise_op("LessOrEqual", 2, 2, infer_compare, compare<LessOrEqualOp>),
      pointwise_op("Greater", 2, 2, infer_compare, compare<GreaterOp>),
      pointwise_op("GreaterOrEqual", 2, 2, infer_compare, compare<GreaterOrEqualOp>),
      pointwise_op("And", 2, 2, infer_boolean, boolean<AndOp>),
      pointwise_op("Or", 2, 2, infer_boolean, boolean<OrOp>),
      pointwise_op("Xor", 2, 2, infer_boolean, boolean<XorOp>),
      pointwise_op("Not", 1, 1, infer_not, logical_not),
      with_gradient(pointwise_op("Where", 3, 3, infer_where, where), where_gradient),
      pointwise_op("IsNaN", 1, 1, infer_is_nan, is_nan),
      pointwise_op("IsInf", 1, 1, infer_is_inf, is_inf),
  };
  return ops;
}

}  // namespace tandem
