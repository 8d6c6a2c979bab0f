// Min Max (all numbers; NaN wins) and Sum Mean (floats): any number of operands, numpy's broadcasting, added from left to right.
#include <cmath>

#include "runtime/ops/families.h"
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

}  // namespace

std::span<const OpDef> variadic_ops() {
  static const OpDef ops[] = {
      pointwise_op("Min", 1, -1, infer_number, variadic<MinOp, false>),
      pointwise_op("Max", 1, -1, infer_number, variadic<MaxOp, false>),
      pointwise_op("Sum", 1, -1, infer_float, variadic<SumOp, true>),
      pointwise_op("Mean", 1, -1, infer_float, variadic<SumOp, true, true>),
  };
  return ops;
}

}  // namespace tandem
