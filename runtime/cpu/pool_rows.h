// Row operations of channels-last pooling: one row is the channels of one pixel. Vectorised, the instruction set chosen at run time;
// results do not depend on it. Thread-safe.
#pragma once

#include <cstddef>

#include "runtime/base/dtype.h"

namespace tandem {

// acc[c] = max (or sum) over the given cells, in their order; with `first` false the former acc[c] is taken in as well. A NaN stays.
// `count` >= 1. acc must not overlap the cells.
void max_rows(const float* const* cells, std::size_t count, std::size_t channels, bool first, float* acc);
void max_rows(const BFloat16* const* cells, std::size_t count, std::size_t channels, bool first, float* acc);
void sum_rows(const float* const* cells, std::size_t count, std::size_t channels, bool first, float* acc);
void sum_rows(const BFloat16* const* cells, std::size_t count, std::size_t channels, bool first, float* acc);
// out[c] = acc[c] / divisor. For float, out may be acc.
void divide_row(const float* acc, float divisor, std::size_t channels, float* out);
void divide_row(const float* acc, float divisor, std::size_t channels, BFloat16* out);

}  // namespace tandem
