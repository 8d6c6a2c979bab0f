// The two sides of a matrix product that sums over rows in memory (gradients of weights sum over positions), brought into f32 blocks that
// gemm_run takes. Vectorised with run-time dispatch; nothing allocates.
#pragma once

#include <cstdint>

#include "runtime/base/dtype.h"

namespace tandem {

// to[c * to_stride + r] = from[r * from_stride + c] for r < rows, c < columns. `from`: f32 or bf16.
void transpose_rows(DType type, const void* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, float* to,
                    std::int64_t to_stride);
// to[r * to_stride + c] = from[r][first + c] for r < rows, c < columns; zeros where from[r] is null.
void gather_rows(DType type, const void* const* from, std::int64_t first, std::int64_t rows, std::int64_t columns, float* to, std::int64_t to_stride);

}  // namespace tandem
