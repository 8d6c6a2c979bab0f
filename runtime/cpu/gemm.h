// f32 matrix product on packed weights with an epilogue: C = activation(A * B + bias + residual), vectorised with run-time dispatch.
//
// Every output is one chain of multiply-adds that starts at the bias and runs over k in rising order: its bits depend neither on the
// number of rows nor on how rows and panels are cut. Nothing allocates; all functions may be called from several threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/dtype.h"
#include "runtime/cpu/activation.h"

namespace tandem {

// Outputs in one panel of packed weights: two vectors of this machine (32 with AVX-512, 16 with AVX2, 8 otherwise).
std::int64_t gemm_panel_width();
// Rows that the kernel computes at once; cutting rows in multiples of it wastes least.
std::int64_t gemm_tile_rows();
inline std::int64_t gemm_panels(std::int64_t outputs) { return (outputs + gemm_panel_width() - 1) / gemm_panel_width(); }
// Floats of one panel and of all; panels lie one after the other, each [depth][width], zero past the last output.
inline std::int64_t gemm_panel_floats(std::int64_t depth) { return depth * gemm_panel_width(); }
inline std::int64_t gemm_packed_floats(std::int64_t depth, std::int64_t outputs) { return gemm_panels(outputs) * gemm_panel_floats(depth); }

// Fills panels [first, last) of `packed` (which points at panel 0) from load(k, output) -> float. `packed` is 64-byte aligned.
template <class Load>
void gemm_pack(std::int64_t depth, std::int64_t outputs, std::int64_t first, std::int64_t last, float* packed, Load&& load) {
  const std::int64_t width = gemm_panel_width();
  for (std::int64_t p = first; p < last; ++p) {
    float* to = packed + p * gemm_panel_floats(depth);
    const std::int64_t count = std::min(width, outputs - p * width);
    for (std::int64_t k = 0; k < depth; ++k, to += width) {
      for (std::int64_t o = 0; o < count; ++o) to[o] = load(k, p * width + o);
      std::fill(to + count, to + width, 0.0f);
    }
  }
}

// One block of rows. A row of A is `segments` pieces of `segment_depth` floats (depth = their product).
struct GemmBlock {
  std::int64_t rows = 0, segments = 1, segment_depth = 0;
  // Piece s of row r is at table[s * rows + r]; without a table there is one piece, at a + r * a_stride.
  const float* const* table = nullptr;
  const float* a = nullptr;
  std::int64_t a_stride = 0;
  const float* packed = nullptr;  // panel 0
  std::int64_t outputs = 0, first_panel = 0, last_panel = 0;
  const float* bias = nullptr;  // `outputs` floats, or null
  // C and residual: element (r, o) at r * stride + o; f32 or bf16 (rounded to nearest even, after the activation). The residual may be C.
  DType type = DType::kF32;
  const void* residual = nullptr;
  std::int64_t residual_stride = 0;
  void* c = nullptr;
  std::int64_t c_stride = 0;
  Activation activation;
  // What the caller will read next, if known: fetched into L2 meanwhile.
  const void* next = nullptr;
  std::int64_t next_bytes = 0;
};
void gemm_run(const GemmBlock&);

}  // namespace tandem
