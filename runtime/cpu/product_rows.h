// f32 matrix products over packed panels, for operands that are not known before the run (and small constant ones). Vectorised, the
// instruction set chosen at run time. Every output element is one chain of fused multiply-adds over k in rising order, so its bits depend
// neither on the number of rows nor on how the work is cut. Thread-safe.
#pragma once

#include <cstddef>

namespace tandem {

inline constexpr std::size_t kProductPanel = 64;  // outputs (columns of B) of one panel

// panel[k * 64 + n] = b[k * k_step + n * n_step] for n < columns <= 64, zero behind; depth * 64 floats.
void pack_product_panel(const float* b, std::ptrdiff_t k_step, std::ptrdiff_t n_step, std::size_t depth, std::size_t columns, float* panel);

// out[m * out_step + n] = sum over k < depth of a[m * row_step + k * k_step] * panel[k * 64 + n], for m < rows and n < columns <= 64.
void product_rows(const float* a, std::ptrdiff_t row_step, std::ptrdiff_t k_step, std::size_t rows, std::size_t depth, const float* panel,
                  std::size_t columns, float* out, std::ptrdiff_t out_step);

}  // namespace tandem
