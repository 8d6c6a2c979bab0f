// Row operations of channels-last pooling: one row is the channels of one pixel. Vectorised, the instruction set chosen at run time;
// results do not depend on it. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

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

// For gradients. where[c] = index of the first largest cell, counted from `first` for cells[0]; best[c] its value. With `first` above 0 the
// former best[c] and where[c] are taken in. The first NaN counts as largest.
void max_where(const float* const* cells, std::size_t count, std::int32_t first, std::size_t channels, float* best, std::int32_t* where);
void max_where(const BFloat16* const* cells, std::size_t count, std::int32_t first, std::size_t channels, float* best, std::int32_t* where);
// into[i][c] += dy[c] where where[c] == first + i; null into[i] are left out.
void add_where(float* const* into, std::size_t count, std::int32_t first, std::size_t channels, const std::int32_t* where, const float* dy);
void add_where(float* const* into, std::size_t count, std::int32_t first, std::size_t channels, const std::int32_t* where, const BFloat16* dy);
// into[i][c] += dy[c] / divisor; null into[i] are left out.
void add_share(float* const* into, std::size_t count, std::size_t channels, float divisor, const float* dy);
void add_share(float* const* into, std::size_t count, std::size_t channels, float divisor, const BFloat16* dy);

}  // namespace tandem
