// Activations that choose by comparison: PRelu Clip ThresholdedRelu Shrink.
#include <fmt/format.h>

#include <cmath>

#include "runtime/cpu/elementwise_hwy.h"
#include "runtime/ops/activation_gradient.h"
#include "runtime/ops/families.h"
#include "runtime/ops/gradient_support.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

constexpr DType kPReluTypes[] = {DType::kF32, DType::kBF16, DType::kF64, DType::kF16, DType::kI32, DType::kU32, DType::kI64, DType::kU64};

struct PReluOp {
  template <class T>
  T operator()(T x, T slope) const {
    if constexpr (std::is_integral_v<T>)
      return x < T{0} ? static_cast<T>(static_cast<Wrapping<T>>(slope) * static_cast<Wrapping<T>>(x)) : x;
    else
      return x < 0 ? slope * x : x;
  }
};

void infer_prelu(InferContext& c) {
  infer_broadcast(c, kPReluTypes);
  if (broadcast(c.shape(0), c.shape(1)) != c.shape(0)) {
    throw InvalidModel(fmt::format("the slope of shape {} must broadcast to the input's shape {}", to_string(c.shape(1)), to_string(c.shape(0))));
  }
}

Kernel prelu(CpuContext& c) {
  MapBody body;
  dispatch_compute(c.in[0].dtype, [&](auto tag) { body = binary_body<PReluOp, decltype(tag)>; });
  return map_kernel("plain", c.out[0], c.in, std::move(body));
}

// Both bounds are optional and may be computed; the upper one wins where they cross.
template <class T, bool kLow, bool kHigh>
void clip_body(const void* const* in, void* out, std::int64_t n) {
  const auto *x = static_cast<const T*>(in[0]), *low = kLow ? static_cast<const T*>(in[1]) : nullptr,
             *high = kHigh ? static_cast<const T*>(in[kHigh ? 2 : 0]) : nullptr;
  auto* y = static_cast<T*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    T v = x[i];
    if constexpr (kLow) v = v < low[i] ? low[i] : v;
    if constexpr (kHigh) v = v > high[i] ? high[i] : v;
    y[i] = v;
  }
}

void infer_clip(InferContext& c) {
  infer_unary(c, kNumericTypes);
  for (const std::size_t i : {1u, 2u}) {
    if (!c.has_input(i)) continue;
    c.expect_same_dtype(0, i);
    if (elements(c.shape(i)) != 1) {
      throw InvalidModel(fmt::format("{} must be a scalar, has shape {}", i == 1 ? "min" : "max", to_string(c.shape(i))));
    }
  }
}

// Constant f32 bounds: the vectorised form; null otherwise.
MapBody constant_clip(const CpuContext& c) {
  if (compute_type(c.in[0].dtype) != DType::kF32) return nullptr;
  float bounds[2] = {-INFINITY, INFINITY};
  for (const std::size_t i : {1u, 2u}) {
    if (!c.has_input(i)) continue;
    if (!c.constant(i)) return nullptr;
    bounds[i - 1] = static_cast<float>(c.constant(i)->to_doubles()[0]);
    if (std::isnan(bounds[i - 1])) return nullptr;
  }
  return float_map(FloatMap::kClip, bounds[0], bounds[1]);
}

Kernel clip(CpuContext& c) {
  if (auto body = constant_clip(c)) return map_kernel("hwy", c.out[0], {c.in[0]}, std::move(body));
  MapBody body;
  std::vector<TensorDesc> in(3);
  in[0] = c.in[0];
  for (const std::size_t i : {1u, 2u}) {
    if (c.has_input(i)) in[i] = {c.in[i].dtype, {}};  // one element, whatever its rank
  }
  dispatch_compute(c.in[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    body = in[1] ? (in[2] ? clip_body<T, true, true> : clip_body<T, true, false>) : (in[2] ? clip_body<T, false, true> : clip_body<T, false, false>);
  });
  return map_kernel("plain", c.out[0], in, std::move(body));
}

struct ThresholdParams {
  float a, b;  // alpha; lambd and bias
};

void infer_thresholded_relu(InferContext& c) {
  infer_unary(c, kFloatTypes);
  c.set_params(ThresholdParams{c.attributes().real("alpha", 1.0f), 0});
}
void infer_shrink(InferContext& c) {
  infer_unary(c, kNumericTypes);
  c.set_params(ThresholdParams{c.attributes().real("lambd", 0.5f), c.attributes().real("bias", 0.0f)});
}

template <class T>
struct ThresholdedRelu {
  T alpha;
  explicit ThresholdedRelu(ThresholdParams p) : alpha(static_cast<T>(p.a)) {}
  T operator()(T x) const { return x <= alpha ? T{0} : x; }
};
// Integers are computed as double and truncated.
template <class T>
struct Shrink {
  using F = std::conditional_t<std::is_integral_v<T>, double, T>;
  F lambd, bias;
  explicit Shrink(ThresholdParams p) : lambd(static_cast<F>(p.a)), bias(static_cast<F>(p.b)) {}
  T operator()(T value) const {
    const F x = static_cast<F>(value), y = x < -lambd ? x + bias : x > lambd ? x - bias : F{0};
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::int64_t>(std::min(std::max(y, -9.0e18), 9.0e18)));
    else
      return y;
  }
};

template <template <class> class Op, bool kFloatsOnly>
Kernel threshold(CpuContext& c) {
  const auto p = c.params<ThresholdParams>();
  MapBody body;
  dispatch_compute(c.in[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_floating_point_v<T> || !kFloatsOnly) {
      body = [op = Op<T>(p)](const void* const* in, void* out, std::int64_t n) {
        map_loop(op, static_cast<const T*>(in[0]), static_cast<T*>(out), n);
      };
    }
  });
  return map_kernel("plain", c.out[0], c.in, std::move(body));
}

void prelu_gradient(GradientContext& c) {
  const ValueId dy = c.dy(), x = c.input(0), slope = c.input(1), zero = c.number(0);
  if (c.wants(0)) c.set(0, c.emit("Where", {c.emit("Less", {x, zero}), c.emit("Mul", {dy, slope}), dy}));
  if (c.wants(1)) c.set_summed(1, c.emit("Mul", {dy, c.emit("Min", {x, zero})}));
}

// The general form: bounds that are computed, or float64. What is cut off goes to the bound that did it.
void clip_gradient(GradientContext& c) {
  const bool fixed = (!c.has_input(1) || c.constant(1)) && (!c.has_input(2) || c.constant(2));
  if (fixed && c.dtype(c.input(0)) == DType::kF32) return activation_gradient(c);
  ValueId to_x = c.dy(), raised = c.input(0);
  ValueId low = kNoValue, high = kNoValue;
  if (c.has_input(1)) {
    low = c.reshape(c.input(1), {});
    raised = c.emit("Max", {c.input(0), low});
  }
  if (c.has_input(2)) {
    high = c.reshape(c.input(2), {});
    const ValueId cut = c.emit("Greater", {raised, high});
    if (c.wants(2)) c.set(2, c.reshape(c.sum_to(only_where(c, cut, to_x), {}), c.shape(c.input(2))));
    to_x = only_else(c, cut, to_x);
  }
  if (c.has_input(1)) {
    const ValueId cut = c.emit("Less", {c.input(0), low});
    if (c.wants(1)) c.set(1, c.reshape(c.sum_to(only_where(c, cut, to_x), {}), c.shape(c.input(1))));
    to_x = only_else(c, cut, to_x);
  }
  c.set(0, to_x);
}

constexpr OpDef clip_op() {
  OpDef op = with_gradient(pointwise_op("Clip", 1, 3, infer_clip, clip), clip_gradient);
  op.data_inputs = 1;
  op.rows = rows_of_first;  // the bounds are scalars, whatever the batch
  return op;
}

}  // namespace

std::span<const OpDef> threshold_ops() {
  static const OpDef ops[] = {
      clip_op(),
      with_gradient(pointwise_op("PRelu", 2, 2, infer_prelu, prelu), prelu_gradient),
      with_gradient(pointwise_op("ThresholdedRelu", 1, 1, infer_thresholded_relu, threshold<ThresholdedRelu, true>), activation_gradient),
      with_gradient(pointwise_op("Shrink", 1, 1, infer_shrink, threshold<Shrink, false>), activation_gradient),
  };
  return ops;
}

}  // namespace tandem
