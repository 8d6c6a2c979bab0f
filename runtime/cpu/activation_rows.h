// Activations and conversions over rows of floats, vectorised with run-time dispatch. Nothing allocates.
#pragma once

#include <cstdint>

#include "runtime/base/dtype.h"
#include "runtime/cpu/activation.h"

namespace tandem {

// rows x count floats in place, rows `stride` apart.
void activate_rows(const Activation&, float* data, std::int64_t rows, std::int64_t count, std::int64_t stride);
// to[i] = from[i], with ReLU where asked; bf16 to f32.
void widen_row(const BFloat16* from, float* to, std::int64_t count, bool relu);
void relu_row(const float* from, float* to, std::int64_t count);
// Rounds to nearest even; NaN stays NaN.
void narrow_row(const float* from, BFloat16* to, std::int64_t count);

}  // namespace tandem
