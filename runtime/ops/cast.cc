// Cast and CastLike. Floats go to integers by truncation towards zero (what does not fit wraps around as numpy's astype does on x86 for 64
// bits), to bool by != 0; float16 and bfloat16 round to nearest even.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "runtime/base/dtype_onnx.h"
#include "runtime/cpu/strided.h"
#include "runtime/ops/families.h"
#include "runtime/ops/gradient_support.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

void infer_cast(InferContext& c) { c.set_output(0, dtype_from_onnx(c.attributes().integer("to")), c.shape(0)); }
void infer_cast_like(InferContext& c) { c.set_output(0, c.dtype(1), c.shape(0)); }

// Elements go through one of four wide types, so that 13 types need not meet 13.
template <class T>
using Wide =
    std::conditional_t<std::is_same_v<T, double>, double,
                       std::conditional_t<!std::is_integral_v<T>, float, std::conditional_t<std::is_unsigned_v<T>, std::uint64_t, std::int64_t>>>;

template <class To, class V>
To narrowed(V v) {
  if constexpr (std::is_same_v<To, bool>) {
    return v != V{0};
  } else if constexpr (std::is_same_v<To, BFloat16> || std::is_same_v<To, Float16>) {
    return To(static_cast<float>(v));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<V>) {
    if (!(v > V(-9.3e18) && v < V(18446744073709551616.0)))
      return static_cast<To>(std::isnan(v) || v < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max());
    if (v >= V(9223372036854775808.0)) return static_cast<To>(static_cast<std::uint64_t>(v));
    if (v < V(-9223372036854775808.0)) return static_cast<To>(std::numeric_limits<std::int64_t>::min());
    return static_cast<To>(static_cast<std::int64_t>(v));
  } else {
    return static_cast<To>(v);
  }
}

constexpr std::int64_t kChunk = 256;  // elements that are held in a wide type at a time

// `n` elements, `step` elements apart, from and to a chunk of wide ones.
using Widen = void (*)(const void* x, std::int64_t step, std::int64_t n, void* wide);
using Narrow = void (*)(const void* wide, std::int64_t n, void* y, std::int64_t step);

template <class From>
void widen(const void* x, std::int64_t step, std::int64_t n, void* wide) {
  for (std::int64_t i = 0; i < n; ++i) static_cast<Wide<From>*>(wide)[i] = static_cast<Wide<From>>(static_cast<const From*>(x)[i * step]);
}
template <class To, class V>
void narrow(const void* wide, std::int64_t n, void* y, std::int64_t step) {
  for (std::int64_t i = 0; i < n; ++i) static_cast<To*>(y)[i * step] = narrowed<To>(static_cast<const V*>(wide)[i]);
}

// How one type becomes another.
struct Conversion {
  Widen widen;
  Narrow narrow;
};
template <class V>
Narrow narrow_to(DType to) {
  Narrow found = nullptr;
  dispatch(to, [&](auto t) { found = narrow<decltype(t), V>; });
  return found;
}
Conversion conversion(DType from, DType to) {
  Conversion c{};
  dispatch(from, [&](auto f) {
    using From = decltype(f);
    c = {widen<From>, narrow_to<Wide<From>>(to)};
  });
  return c;
}

Kernel cpu(CpuContext& c) {
  const StridedLoop loop = broadcast_loop(c.out[0], std::span(c.in).first(1));
  const Conversion convert = conversion(c.in[0].dtype, c.out[0].dtype);
  const auto from_bytes = static_cast<std::int64_t>(size_of(c.in[0].dtype)), to_bytes = static_cast<std::int64_t>(size_of(c.out[0].dtype));
  return Kernel::single("plain", loop.tasks(), [=](const KernelArgs& k, int task) {
    alignas(8) std::byte wide[kChunk * 8];
    loop.for_each_run(task, [&](const std::int64_t* at, std::int64_t n) {
      for (std::int64_t i = 0; i < n; i += kChunk) {
        const std::int64_t count = std::min(kChunk, n - i);
        convert.widen(k.input<std::byte>(0) + (at[1] + i * loop.step(1)) * from_bytes, loop.step(1), count, wide);
        convert.narrow(wide, count, k.output<std::byte>(0) + (at[0] + i * loop.step(0)) * to_bytes, loop.step(0));
      }
    });
  });
}

// CastLike's second operand gives its type alone.
Rows rows(const RowContext& c) {
  if (!c.inputs[0].is_batched()) return Rows::mixed();
  const Shape& out = c.output_shape();
  return !out.empty() && out[0] == c.inputs[0].per_sample * c.batch ? c.inputs[0] : Rows::mixed();
}

void gradient(GradientContext& c) { c.set(0, c.emit("Cast", {c.dy()}, attribute("to", dtype_to_onnx(c.dtype(c.input(0)))))); }

}  // namespace

std::span<const OpDef> cast_ops() {
  static const OpDef ops[] = {
      {.name = "Cast", .infer = infer_cast, .cpu = cpu, .rows = rows, .layout = LayoutRule::kAny, .gradient = gradient},
      {.name = "CastLike",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_cast_like,
       .cpu = cpu,
       .rows = rows,
       .layout = LayoutRule::kAny,
       .gradient = gradient},
  };
  return ops;
}

}  // namespace tandem
