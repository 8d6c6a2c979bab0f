// Sqrt Exp Log Reciprocal Floor Ceil Round Sin Cos (floats), Neg (signed types), Abs Sign (all numbers).
#include <cmath>

#include "runtime/ops/families.h"
#include "runtime/ops/gradient_support.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

struct SqrtOp {
  template <class T>
  T operator()(T x) const {
    return std::sqrt(x);
  }
};
struct ExpOp {
  template <class T>
  T operator()(T x) const {
    return std::exp(x);
  }
};
struct LogOp {
  template <class T>
  T operator()(T x) const {
    return std::log(x);
  }
};
struct ReciprocalOp {
  template <class T>
  T operator()(T x) const {
    return T{1} / x;
  }
};
struct FloorOp {
  template <class T>
  T operator()(T x) const {
    return std::floor(x);
  }
};
struct CeilOp {
  template <class T>
  T operator()(T x) const {
    return std::ceil(x);
  }
};
struct RoundOp {  // half to even: the rounding mode is never changed
  template <class T>
  T operator()(T x) const {
    return std::nearbyint(x);
  }
};
struct SinOp {
  template <class T>
  T operator()(T x) const {
    return std::sin(x);
  }
};
struct CosOp {
  template <class T>
  T operator()(T x) const {
    return std::cos(x);
  }
};
struct NegOp {  // the smallest integer stays what it is
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(x));
    else
      return -x;
  }
};
struct AbsOp {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::abs(x);
    else if constexpr (std::is_signed_v<T>)
      return x < 0 ? NegOp{}(x) : x;
    else
      return x;
  }
};
struct SignOp {  // NaN stays NaN
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) {
      return x > 0 ? T{1} : x < 0 ? T{-1} : x == 0 ? T{0} : x;
    } else {
      return static_cast<T>((x > 0) - (x < T{0}));
    }
  }
};

template <class Op, bool kFloatsOnly>
Kernel unary(CpuContext& c) {
  MapBody body;
  dispatch_compute(c.out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_floating_point_v<T> || !kFloatsOnly) body = unary_body<Op, T>;
  });
  return map_kernel("plain", c.out[0], c.in, std::move(body));
}

// dx = dy times ...
void sqrt_gradient(GradientContext& c) { c.set(0, c.emit("Div", {c.emit("Mul", {c.dy(), c.number(0.5)}), c.output()})); }
void exp_gradient(GradientContext& c) { c.set(0, c.emit("Mul", {c.dy(), c.output()})); }
void log_gradient(GradientContext& c) { c.set(0, c.emit("Div", {c.dy(), c.input(0)})); }
void reciprocal_gradient(GradientContext& c) {
  const ValueId y = c.output();
  c.set(0, c.emit("Mul", {c.emit("Mul", {c.emit("Neg", {c.dy()}), y}), y}));
}
void sin_gradient(GradientContext& c) { c.set(0, c.emit("Mul", {c.dy(), c.emit("Cos", {c.input(0)})})); }
void cos_gradient(GradientContext& c) { c.set(0, c.emit("Mul", {c.emit("Neg", {c.dy()}), c.emit("Sin", {c.input(0)})})); }
void neg_gradient(GradientContext& c) { c.set(0, c.emit("Neg", {c.dy()})); }
void abs_gradient(GradientContext& c) { c.set(0, c.emit("Mul", {c.dy(), c.emit("Sign", {c.input(0)})})); }

void infer_float(InferContext& c) { infer_unary(c, kFloatTypes); }

constexpr OpDef widening(std::string_view name, Kernel (*cpu)(CpuContext&), void (*gradient)(GradientContext&)) {
  return with_gradient(pointwise_op(name, 1, 1, infer_float, cpu, Bf16Rule::kWiden), gradient);
}

void infer_signed(InferContext& c) { infer_unary(c, kSignedTypes); }
void infer_number(InferContext& c) { infer_unary(c, kNumericTypes); }

}  // namespace

std::span<const OpDef> unary_ops() {
  static const OpDef ops[] = {
      widening("Sqrt", unary<SqrtOp, true>, sqrt_gradient),
      widening("Exp", unary<ExpOp, true>, exp_gradient),
      widening("Log", unary<LogOp, true>, log_gradient),
      widening("Reciprocal", unary<ReciprocalOp, true>, reciprocal_gradient),
      widening("Sin", unary<SinOp, true>, sin_gradient),
      widening("Cos", unary<CosOp, true>, cos_gradient),
      with_gradient(pointwise_op("Floor", 1, 1, infer_float, unary<FloorOp, true>), zero_gradient),
      with_gradient(pointwise_op("Ceil", 1, 1, infer_float, unary<CeilOp, true>), zero_gradient),
      with_gradient(pointwise_op("Round", 1, 1, infer_float, unary<RoundOp, true>), zero_gradient),
      with_gradient(pointwise_op("Neg", 1, 1, infer_signed, unary<NegOp, false>), neg_gradient),
      with_gradient(pointwise_op("Abs", 1, 1, infer_number, unary<AbsOp, false>), abs_gradient),
      with_gradient(pointwise_op("Sign", 1, 1, infer_number, unary<SignOp, false>), zero_gradient),
  };
  return ops;
}

}  // namespace tandem
