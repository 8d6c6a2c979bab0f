// What the operators of the optimizer share: arrays of float32 are read, computed and written a block at a time, so that an output may lie in the
// memory of the operand that it follows.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "runtime/cpu/strided.h"
#include "runtime/graph/optimizer.h"

namespace tandem {

inline constexpr std::int64_t kStepBlock = 512;  // elements; loops always run over a whole block, so that they are vectorised

template <class F>
void each_of_block(F f) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < kStepBlock; ++i) f(i);
}

// n elements; zeros up to the block's end.
inline void load_block(const float* from, std::int64_t n, float* to) {
  std::copy_n(from, n, to);
  std::fill(to + n, to + kStepBlock, 0.0f);
}

// g = scale * g + 2 * l2 * w; w is not read without l2.
inline void scale_gradient(float* g, const float* w, float scale, float l2) {
  each_of_block([=](std::int64_t i) { g[i] *= scale; });
  if (l2 != 0) each_of_block([g, w, twice = 2 * l2](std::int64_t i) { g[i] += twice * w[i]; });
}

inline int step_tasks(std::int64_t size) { return static_cast<int>(std::max<std::int64_t>(1, (size + kTaskElements - 1) / kTaskElements)); }

// Calls f(first, count) for the blocks of a task.
template <class F>
void for_each_block(std::int64_t size, int task, F&& f) {
  const std::int64_t end = std::min(size, (task + 1) * kTaskElements);
  for (std::int64_t at = task * kTaskElements; at < end; at += kStepBlock) f(at, std::min(kStepBlock, end - at));
}

// Operands `a` and `b` are float32 of one shape; the operand holds the step's scalars. Throw InvalidModel.
inline void expect_alike(InferContext& c, std::size_t a, std::size_t b) {
  constexpr DType kType[] = {DType::kF32};
  c.expect_dtype(a, kType);
  c.expect_dtype(b, kType);
  if (c.shape(a) != c.shape(b)) {
    throw InvalidModel(fmt::format("operand {} must have the shape {} of operand {}, has {}", b, to_string(c.shape(a)), a, to_string(c.shape(b))));
  }
}
inline void expect_scalars(InferContext& c, std::size_t operand) {
  constexpr DType kType[] = {DType::kF32};
  c.expect_dtype(operand, kType);
  if (c.shape(operand) != Shape{static_cast<std::int64_t>(kStepScalars)}) {
    throw InvalidModel(
        fmt::format("operand {} (scalars) must have shape [{}], has {}", operand, std::size_t{kStepScalars}, to_string(c.shape(operand))));
  }
}

// GradientNorms, AccumulateGradient and MovingAverage (optimizer_norms.cc).
void infer_gradient_norms(InferContext&);
Kernel gradient_norms_cpu(CpuContext&);
void infer_running_sum(InferContext&);  // of the other two
Kernel accumulate_gradient_cpu(CpuContext&);
Kernel moving_average_cpu(CpuContext&);

}  // namespace tandem
