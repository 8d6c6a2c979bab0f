// Cast and CastLike. Floats go to integers by truncation towards zero (what does not fit wraps around as numpy's astype does on x86 for 64
// bits), to bool by != 0; float16 and bfloat16 round to nearest even.
#include <cmath>

#include "runtime/base/dtype_onnx.h"
#include "runtime/cpu/strided.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

void infer_cast(InferContext& c) { c.set_output(0, dtype_from_onnx(c.attributes().integer("to")), c.shape(0)); }
void infer_cast_like(InferContext& c) { c.set_output(0, c.dtype(1), c.shape(0)); }

// A value wide enough for all of T: double for floats, else the integer itself.
template <class T>
auto widened(T v) {
  if constexpr (std::is_arithmetic_v<T>)
    return v;
  else
    return static_cast<float>(v);
}

template <class To, class From>
To cast(From value) {
  const auto v = widened(value);
  using V = decltype(v);
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

Kernel cpu(CpuContext& c) {
  const StridedLoop loop = broadcast_loop(c.out[0], std::span(c.in).first(1));
  Kernel kernel;
  dispatch(c.in[0].dtype, [&](auto from) {
    using From = decltype(from);
    dispatch(c.out[0].dtype, [&](auto to) {
      using To = decltype(to);
      kernel = Kernel::single("plain", loop.tasks(), [loop](const KernelArgs& k, int task) {
        loop.for_each_run(task, [&](const std::int64_t* at, std::int64_t n) {
          To* y = k.output<To>(0) + at[0];
          const From* x = k.input<From>(0) + at[1];
          for (std::int64_t i = 0; i < n; ++i) y[i * loop.step(0)] = cast<To>(x[i * loop.step(1)]);
        });
      });
    });
  });
  return kernel;
}

// CastLike's second operand gives its type alone.
Rows rows(const RowContext& c) {
  if (!c.inputs[0].is_batched()) return Rows::mixed();
  const Shape& out = c.output_shape();
  return !out.empty() && out[0] == c.inputs[0].per_sample * c.batch ? c.inputs[0] : Rows::mixed();
}

}  // namespace

std::span<const OpDef> cast_ops() {
  static const OpDef ops[] = {
      {.name = "Cast", .infer = infer_cast, .cpu = cpu, .rows = rows, .layout = LayoutRule::kAny},
      {.name = "CastLike", .min_inputs = 2, .max_inputs = 2, .infer = infer_cast_like, .cpu = cpu, .rows = rows, .layout = LayoutRule::kAny},
  };
  return ops;
}

}  // namespace tandem
