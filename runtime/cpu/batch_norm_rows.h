// Batch norm over the rows of a channels-last tensor: one row is the channels of one pixel, rows lie `pitch` elements apart, x and y are
// float or bf16, everything per channel is float. Vectorised, the instruction set chosen at run time; rows are walked in their order, so
// bits depend on the rows of a call alone. Thread-safe.
#pragma once

#include <cstdint>

#include "runtime/base/dtype.h"

namespace tandem {

template <class T>
struct RowsOf {
  T* data;
  std::int64_t pitch;
};

// What each channel is normalised with: n(x) = (x - mean) * scale + shift, where `relu` is set with max(n, 0) behind. Backward then
// lets dy pass where n(x) > 0, computed the same way.
struct ChannelNorm {
  std::int64_t channels;
  const float *mean, *scale, *shift;
  bool relu;
};

// sum[c] += sum of (x - centre[c]), squares[c] += sum of (x - centre[c])^2. For sums that float holds well: some hundred rows a call.
void moment_rows(RowsOf<const float> x, std::int64_t rows, std::int64_t channels, const float* centre, float* sum, float* squares);
void moment_rows(RowsOf<const BFloat16> x, std::int64_t rows, std::int64_t channels, const float* centre, float* sum, float* squares);

// y may be x.
void normalise_rows(const ChannelNorm&, RowsOf<const float> x, RowsOf<float> y, std::int64_t rows);
void normalise_rows(const ChannelNorm&, RowsOf<const BFloat16> x, RowsOf<BFloat16> y, std::int64_t rows);

// sum[c] += sum of dy, product[c] += sum of dy * (x - mean).
void norm_gradient_sums(const ChannelNorm&, RowsOf<const float> dy, RowsOf<const float> x, std::int64_t rows, float* sum, float* product);
void norm_gradient_sums(const ChannelNorm&, RowsOf<const BFloat16> dy, RowsOf<const BFloat16> x, std::int64_t rows, float* sum, float* product);

// dx = scale * dy - offset - slope * (x - mean). dx may be dy or x.
struct NormGradient {
  const float *offset, *slope;
};
void norm_gradient_rows(const ChannelNorm&, const NormGradient&, RowsOf<const float> dy, RowsOf<const float> x, RowsOf<float> dx, std::int64_t rows);
void norm_gradient_rows(const ChannelNorm&, const NormGradient&, RowsOf<const BFloat16> dy, RowsOf<const BFloat16> x, RowsOf<BFloat16> dx,
                        std::int64_t rows);

}  // namespace tandem
