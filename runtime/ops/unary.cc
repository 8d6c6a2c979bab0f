// Sqrt Exp Log Reciprocal Floor Ceil Round Sin Cos (floats), Neg (signed types), Abs Sign (all numbers).
#include <cmath>

#include "runtime/ops/families.h"
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

void infer_float(InferContext& c) { infer_unary(c, kFloatTypes); }
void infer_signed(InferContext& c) { infer_unary(c, kSignedTypes); }
void infer_number(InferContext& c) { infer_unary(c, kNumericTypes); }

}  // namespace

std::span<const OpDef> unary_ops() {
  static const OpDef ops[] = {
      pointwise_op("Sqrt", 1, 1, infer_float, unary<SqrtOp, true>, Bf16Rule::kWiden),
      pointwise_op("Exp", 1, 1, infer_float, unary<ExpOp, true>, Bf16Rule::kWiden),
      pointwise_op("Log", 1, 1, infer_float, unary<LogOp, true>, Bf16Rule::kWiden),
      pointwise_op("Reciprocal", 1, 1, infer_float, unary<ReciprocalOp, true>, Bf16Rule::kWiden),
      pointwise_op("Sin", 1, 1, infer_float, unary<SinOp, true>, Bf16Rule::kWiden),
      pointwise_op("Cos", 1, 1, infer_float, unary<CosOp, true>, Bf16Rule::kWiden),
      pointwise_op("Floor", 1, 1, infer_float, unary<FloorOp, true>),
      pointwise_op("Ceil", 1, 1, infer_float, unary<CeilOp, true>),
      pointwise_op("Round", 1, 1, infer_float, unary<RoundOp, true>),
      pointwise_op("Neg", 1, 1, infer_signed, unary<NegOp, false>),
      pointwise_op("Abs", 1, 1, infer_number, unary<AbsOp, false>),
      pointwise_op("Sign", 1, 1, infer_number, unary<SignOp, false>),
  };
  return ops;
}

}  // namespace tandem
