// Sums of columns, vectorised (Highway).
#pragma once

#include <cstdint>

namespace tandem {

// sum[j] += x[r * row_step + j] for r = 0 .. rows - 1 in this order and j < n, each addition in double: what a plain loop gives.
void add_rows_f64(const float* x, std::int64_t row_step, std::int64_t rows, std::int64_t n, double* sum);

}  // namespace tandem
