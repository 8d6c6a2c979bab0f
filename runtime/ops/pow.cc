// Pow: the base's type is the result's; the exponent may be of any numeric type.
#include <cmath>

#include "runtime/base/dtype_onnx.h"
#include "runtime/cpu/convert.h"
#include "runtime/ops/families.h"
#include "runtime/ops/gradient_support.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

constexpr DType kBaseTypes[] = {DType::kF32, DType::kBF16, DType::kF64, DType::kF16, DType::kI32, DType::kI64};
constexpr std::int64_t kBlock = 256;

// Integers to an integer power wrap around; a negative exponent gives the true value truncated, 0 for a base of 0.
struct IntegerPower {
  template <class T>
  T operator()(T base, std::int64_t exponent) const {
    if (exponent < 0) return base == 1 ? T{1} : base == -1 ? (exponent % 2 ? T{-1} : T{1}) : T{0};
    auto square = static_cast<Wrapping<T>>(base);
    Wrapping<T> result = 1;
    for (; exponent > 0; exponent >>= 1) {
      if (exponent & 1) result *= square;
      square *= square;
    }
    return static_cast<T>(result);
  }
};
struct RealPower {
  template <class T, class E>
  T operator()(T base, E exponent) const {
    if constexpr (std::is_integral_v<T>) {
      const double r = std::pow(static_cast<double>(base), static_cast<double>(exponent));
      T out;
      converter(DType::kF64, dtype_of<T>())(&r, &out, 1);
      return out;
    } else {
      return static_cast<T>(std::pow(base, exponent));
    }
  }
};

// The exponents are converted to E, a block at a time.
template <class T, class E, class Op>
MapBody power_body(DType exponent) {
  const DType type = compute_type(exponent);
  return [convert = converter(type, dtype_of<E>()), unit = size_of(type)](const void* const* in, void* out, std::int64_t n) {
    E exponents[kBlock];
    for (std::int64_t at = 0; at < n; at += kBlock) {
      const std::int64_t m = std::min(kBlock, n - at);
      convert(static_cast<const std::byte*>(in[1]) + static_cast<std::size_t>(at) * unit, exponents, m);
      const T* x = static_cast<const T*>(in[0]) + at;
      T* y = static_cast<T*>(out) + at;
      for (std::int64_t i = 0; i < m; ++i) y[i] = Op{}(x[i], exponents[i]);
    }
  };
}

template <int kExponent>
struct SmallPower {
  template <class T>
  T operator()(T x) const {
    return kExponent == 3 ? x * x * x : x * x;
  }
};

// Squares and cubes without a call; null where there is nothing to gain.
MapBody small_power(const CpuContext& c) {
  const Tensor* e = c.constant(1);
  if (!e || e->size() != 1 || c.in[0].shape != c.out[0].shape || !is_float(c.in[0].dtype)) return nullptr;
  const double exponent = e->to_doubles()[0];
  if (exponent != 2 && exponent != 3) return nullptr;
  if (compute_type(c.in[0].dtype) == DType::kF32) return exponent == 2 ? unary_body<SmallPower<2>, float> : unary_body<SmallPower<3>, float>;
  return exponent == 2 ? unary_body<SmallPower<2>, double> : unary_body<SmallPower<3>, double>;
}

Kernel power(CpuContext& c) {
  if (auto body = small_power(c)) return map_kernel("plain", c.out[0], {c.in[0]}, std::move(body));
  const DType base = compute_type(c.in[0].dtype), exponent = c.in[1].dtype;
  MapBody body;
  if (base == DType::kF32 && compute_type(exponent) == DType::kF32) {
    body = power_body<float, float, RealPower>(exponent);
  } else if (base == DType::kF32) {
    body = power_body<float, double, RealPower>(exponent);
  } else if (base == DType::kF64) {
    body = power_body<double, double, RealPower>(exponent);
  } else if (base == DType::kI32) {
    body =
        is_float(exponent) ? power_body<std::int32_t, double, RealPower>(exponent) : power_body<std::int32_t, std::int64_t, IntegerPower>(exponent);
  } else {
    body =
        is_float(exponent) ? power_body<std::int64_t, double, RealPower>(exponent) : power_body<std::int64_t, std::int64_t, IntegerPower>(exponent);
  }
  return map_kernel("plain", c.out[0], c.in, std::move(body));
}

void infer(InferContext& c) {
  c.expect_dtype(0, kBaseTypes);
  c.expect_dtype(1, kNumericTypes);
  c.set_output(0, c.dtype(0), broadcast(c.shape(0), c.shape(1)));
}

// One known exponent.
void power_gradient(GradientContext& c, double e) {
  if (e == 0) return;
  const ValueId x = c.input(0), base = e == 1 ? kNoValue : e == 2 ? x : c.emit("Pow", {x, c.number(e - 1)});
  const ValueId scaled = c.emit("Mul", {c.dy(), c.number(e)});
  c.set_summed(0, e == 1 ? scaled : c.emit("Mul", {scaled, base}));
}

// x^e: e x^(e-1), 0 where e is 0; and x^e ln x, 0 where x is 0.
void gradient(GradientContext& c) {
  if (const Tensor* known = c.constant(1); known && known->size() == 1) return power_gradient(c, known->to_doubles()[0]);
  const ValueId dy = c.dy(), x = c.input(0), zero = c.number(0), one = c.number(1);
  ValueId e = c.input(1);
  if (c.dtype(e) != c.dtype(x)) e = c.emit("Cast", {e}, attribute("to", dtype_to_onnx(c.dtype(x))));
  if (c.wants(0)) {
    const ValueId slope = c.emit("Mul", {e, c.emit("Pow", {x, c.emit("Sub", {e, one})})});
    c.set_summed(0, c.emit("Mul", {dy, only_else(c, c.emit("Equal", {e, zero}), slope)}));
  }
  if (c.wants(1)) {
    const ValueId log = c.emit("Log", {c.emit("Where", {c.emit("Equal", {x, zero}), one, x})});
    c.set_summed(1, c.emit("Mul", {c.emit("Mul", {dy, c.output()}), log}));
  }
}

}  // namespace

std::span<const OpDef> pow_ops() {
  static const OpDef ops[] = {with_gradient(pointwise_op("Pow", 2, 2, infer, power, Bf16Rule::kWiden), gradient)};
  return ops;
}

}  // namespace tandem
