// What the families of elementwise operators share: type lists, shape rules, and the way from an operation on two numbers to a kernel.
#pragma once

#include <type_traits>

#include "runtime/cpu/map.h"
#include "runtime/ops/op.h"

namespace tandem {

inline constexpr DType kFloatTypes[] = {DType::kF32, DType::kBF16, DType::kF64, DType::kF16};
inline constexpr DType kSignedTypes[] = {DType::kF32, DType::kBF16, DType::kF64, DType::kF16, DType::kI8, DType::kI16, DType::kI32, DType::kI64};
inline constexpr DType kNumericTypes[] = {DType::kF32, DType::kBF16, DType::kF64, DType::kF16, DType::kI8,  DType::kU8,
                                          DType::kI16, DType::kU16,  DType::kI32, DType::kU32, DType::kI64, DType::kU64};
inline constexpr DType kAllTypes[] = {DType::kF32, DType::kBF16, DType::kF64, DType::kF16, DType::kI8,  DType::kU8,  DType::kI16,
                                      DType::kU16, DType::kI32,  DType::kU32, DType::kI64, DType::kU64, DType::kBool};

// Shape rules: one operand, output alike; operands of one type, broadcast. `result` kNone: the operands' type. Throw InvalidModel.
void infer_unary(InferContext&, std::span<const DType> allowed, DType result = DType::kNone);
void infer_broadcast(InferContext&, std::span<const DType> allowed, DType result = DType::kNone);

// An OpDef with what all elementwise operators have in common; max_inputs -1: any number.
constexpr OpDef pointwise_op(std::string_view name, std::int16_t min_inputs, std::int16_t max_inputs, void (*infer)(InferContext&),
                             Kernel (*cpu)(CpuContext&), Bf16Rule bf16 = Bf16Rule::kStore) {
  OpDef op;
  op.name = name;
  op.min_inputs = min_inputs;
  op.max_inputs = max_inputs;
  op.infer = infer;
  op.cpu = cpu;
  op.data_inputs = ~0u;
  op.rows = rows_elementwise;
  op.layout = LayoutRule::kAny;
  op.bf16 = bf16;
  return op;
}

// Calls f with a value of the arithmetic compute type (compute_type()): float, double or an integer type.
template <class F>
void dispatch_compute(DType storage, F&& f) {
  dispatch(compute_type(storage), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) f(tag);
  });
}

// Unsigned type in which T's additions and products wrap around without undefined behaviour.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) < 4, std::uint32_t, std::make_unsigned_t<T>>;

// Loops over plain arrays; `op` is stateless or small. The outputs may lie in an operand's memory.
template <class T, class R, class Op>
void map_loop(Op op, const T* x, R* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = op(x[i]);
}
template <class T, class R, class Op>
void map_loop(Op op, const T* a, const T* b, R* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = op(a[i], b[i]);
}

// Bodies for map_kernel: Op{}(T) -> R and Op{}(T, T) -> R.
template <class Op, class T, class R = T>
void unary_body(const void* const* in, void* out, std::int64_t n) {
  map_loop(Op{}, static_cast<const T*>(in[0]), static_cast<R*>(out), n);
}
template <class Op, class T, class R = T>
void binary_body(const void* const* in, void* out, std::int64_t n) {
  map_loop(Op{}, static_cast<const T*>(in[0]), static_cast<const T*>(in[1]), static_cast<R*>(out), n);
}

}  // namespace tandem
