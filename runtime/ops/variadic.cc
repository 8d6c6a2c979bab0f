// Min Max (all numbers; NaN wins) and Sum Mean (floats): any number of operands, numpy's broadcasting, added from left to right.
#include <cmath>

#include "runtime/ops/families.h"
#include "runtime/ops/gradient_support.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

struct MaxOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a > b || a != a ? a : b;
    else
      return a > b ? a : b;
  }
};
struct MinOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a < b || a != a ? a : b;
    else
      return a < b ? a : b;
  }
};
struct SumOp {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};

// Folds the operands from the left; a block at a time, so that the output may lie in an operand's memory.
template <class Op, class T>
void fold(const void* const* in, std::size_t operands, T divisor, void* out, std::int64_t n) {
  constexpr std::int64_t kBlock = 512;
  const auto operand = [&](std::size_t i) { return static_cast<const T*>(in[i]); };
  auto* y = static_cast<T*>(out);
  if (operands == 2 && divisor == 1) return map_loop(Op{}, operand(0), operand(1), y, n);
  T folded[kBlock];
  for (std::int64_t at = 0; at < n; at += kBlock) {
    const std::int64_t m = std::min(kBlock, n - at);
    std::copy_n(operand(0) + at, m, folded);
    for (std::size_t i = 1; i < operands; ++i) map_loop(Op{}, folded, operand(i) + at, folded, m);
    if (divisor != 1) map_loop([divisor](T v) { return static_cast<T>(v / divisor); }, folded, folded, m);
    std::copy_n(folded, m, y + at);
  }
}

template <class Op, bool kFloatsOnly, bool kDivides = false>
Kernel variadic(CpuContext& c) {
  MapBody body;
  dispatch_compute(c.out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_floating_point_v<T> || !kFloatsOnly) {
      const std::size_t operands = c.in.size();
      const T divisor = kDivides ? static_cast<T>(operands) : T{1};
      body = [operands, divisor](const void* const* in, void* out, std::int64_t n) { fold<Op, T>(in, operands, divisor, out, n); };
    }
  });
  return map_kernel("plain", c.out[0], c.in, std::move(body));
}

void infer_number(InferContext& c) { infer_broadcast(c, kNumericTypes); }
void infer_float(InferContext& c) { infer_broadcast(c, kFloatTypes); }

// Among equal operands the first one gets the gradient.
void choice_gradient(GradientContext& c) {
  ValueId left = c.dy();
  const std::size_t operands = c.node().inputs.size();
  for (std::size_t i = 0; i < operands; ++i) {
    if (i + 1 == operands) return c.set_summed(i, left);
    const ValueId chosen = c.emit("Equal", {c.input(i), c.output()});
    if (c.wants(i)) c.set_summed(i, only_where(c, chosen, left));
    left = only_else(c, chosen, left);
  }
}

void sum_gradient(GradientContext& c) {
  for (std::size_t i = 0; i < c.node().inputs.size(); ++i) c.set_summed(i, c.dy());
}

void mean_gradient(GradientContext& c) {
  const std::size_t operands = c.node().inputs.size();
  const ValueId share = c.emit("Div", {c.dy(), c.number(static_cast<double>(operands))});
  for (std::size_t i = 0; i < operands; ++i) c.set_summed(i, share);
}

}  // namespace

std::span<const OpDef> variadic_ops() {
  static const OpDef ops[] = {
      with_gradient(pointwise_op("Min", 1, -1, infer_number, variadic<MinOp, false>), choice_gradient),
      with_gradient(pointwise_op("Max", 1, -1, infer_number, variadic<MaxOp, false>), choice_gradient),
      with_gradient(pointwise_op("Sum", 1, -1, infer_float, variadic<SumOp, true>), sum_gradient),
      with_gradient(pointwise_op("Mean", 1, -1, infer_float, variadic<SumOp, true, true>), mean_gradient),
  };
  return ops;
}

}  // namespace tandem
