// Kernels of operators that treat each vector along one axis by itself.
#pragma once

#include <algorithm>
#include <string>

#include "runtime/cpu/strided.h"

namespace tandem {

// Calls vector(x, from, y, to, n) for every vector of operand 0 along `axis`, of n elements `from` apart, and output 0's, `to` apart.
template <class T, class F>
Kernel along_axis(const CpuContext& c, std::size_t axis, F vector) {
  Shape outer = c.in[0].shape;
  const std::int64_t n = outer[axis], from = c.in[0].strides()[axis], to = c.out[0].strides()[axis];
  outer[axis] = 1;
  const StridedLoop loop(outer, {c.out[0].strides(), c.in[0].strides()}, std::max<std::int64_t>(1, kTaskElements / std::max<std::int64_t>(1, n)));
  return Kernel::single("plain", loop.tasks(), [=](const KernelArgs& k, int task) {
    loop.for_each_run(task, [&](const std::int64_t* at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i)
        vector(k.input<T>(0) + at[1] + i * loop.step(1), from, k.output<T>(0) + at[0] + i * loop.step(0), to, n);
    });
  });
}

// make(a float or a double), by operand 0's type; all others are refused.
template <class F>
Kernel float_kernel(const CpuContext& c, F&& make) {
  if (c.in[0].dtype == DType::kF64) return make(double{});
  if (c.in[0].dtype == DType::kF32) return make(float{});
  throw Unsupported(std::string("needs float32 or float64 operands, has ") + std::string(name_of(c.in[0].dtype)));
}

}  // namespace tandem
