// Activations and conversions over rows of floats, vectorised with run-time dispatch. Nothing allocates.
#pragma once

#include <cstdint>

#include "runtime/base/dtype.h"
#include "runtime/cpu/activation.h"

namespace tandem {

// rows x count floats in place, rows `stride` apart.
void activate_rows(const Activation&, float* data, std::int64_t rows, std::int64_t count, std::int64_t stride);
// What follows a product: residual, activation, storing. Pointers at the first row's first element, strides in elements.
struct RowExit {
  DType type = DType::kF32;  // of residual and c: f32, or bf16 rounded to nearest even
  const void* residual = nullptr;
  std::int64_t residual_stride = 0;
  void* c = nullptr;
  std::int64_t c_stride = 0;
  Activation activation;
};
// c = activation(sums + residual) for rows x count sums, rows `stride` apart.
void finish_rows(const RowExit&, const float* sums, std::int64_t stride, std::int64_t rows, std::int64_t count);
// parts[p * part_stride + i], p < 3: bf16 numbers whose sum is from[i] to 24 bits, largest first.
void split_row(const float* from, BFloat16* parts, std::int64_t part_stride, std::int64_t count);
// to[i] = from[i], with ReLU where asked; bf16 to f32.
void widen_row(const BFloat16* from, float* to, std::int64_t count, bool relu);
void relu_row(const float* from, float* to, std::int64_t count);
// Rounds to nearest even; NaN stays NaN.
void narrow_row(const float* from, BFloat16* to, std::int64_t count);

}  // namespace tandem
