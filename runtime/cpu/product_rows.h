// The two sides of a matrix product that sums over rows in memory (gradients of weights sum over positions), brought into f32 blocks that
// gemm_run takes. Vectorised with run-time dispatch; nothing allocates.
#pragma once

#include <cstdint>

#include "runtime/base/dtype.h"

namespace tandem {

// to[c * to_stride + r] = from[r * from_stride + c] for r < rows, c < columns. `from`: f32 or bf16.
void transpose_rows(DType type, const void* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, float* to,
                    std::int64_t to_stride);
// Panels as gemm_run takes them, `width` columns each: column c of row r goes to to[c / width * panel_stride + r * width + c % width]. Copies
// from[r][first + i] to column `lane` + i for r < rows, i < columns; zeros where from[r] is null.
void gather_rows(DType type, const void* const* from, std::int64_t first, std::int64_t rows, std::int64_t columns, std::int64_t lane, float* to,
                 std::int64_t width, std::int64_t panel_stride);

// One panel for AMX tiles, as amx_pack makes it, from `depth` rows of kAmxPanel numbers each.
void pack_tiles(const float* rows, std::int64_t depth, int parts, BFloat16* panel);

}  // namespace tandem
