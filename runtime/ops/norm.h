// What the normalisations of one sample share: which neighbouring elements of x are a vector, and the statistics of one.
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/ops/op.h"

namespace tandem {

// One vector: `size` elements, row-major in x. Scale and bias element of its i-th element: (first(vector) + i / repeat) % count.
struct NormParams {
  std::int64_t vectors = 0, size = 0;
  std::int64_t repeat = 1;                 // neighbours that share a scale
  std::int64_t per_vector = 0, count = 1;  // vector v begins at scale element v * per_vector % count
  float epsilon = 1e-5f;
  bool centred = true;  // false: RMS, the mean is not taken out
  std::int64_t first(std::int64_t vector) const { return vector * per_vector % count; }
};

// From the attributes and operand 0, x. Throw InvalidModel.
NormParams group_norm_params(const InferContext&, bool one_channel_each);  // Instance- and GroupNormalization
NormParams layer_norm_params(const InferContext&, bool centred);           // Layer- and RMSNormalization

template <class T>
struct NormStatistics {
  double mean = 0, inv_std = 0;
  NormStatistics(const T* x, const NormParams& p) {
    const auto n = static_cast<double>(p.size);
    if (p.centred) {
      for (std::int64_t i = 0; i < p.size; ++i) mean += static_cast<double>(x[i]);
      mean /= n;
    }
    double squares = 0;
    for (std::int64_t i = 0; i < p.size; ++i) squares += (static_cast<double>(x[i]) - mean) * (static_cast<double>(x[i]) - mean);
    inv_std = 1 / std::sqrt(squares / n + static_cast<double>(p.epsilon));
  }
};

// Gradients (norm_gradient.cc).
void group_norm_gradient(GradientContext&);
void layer_norm_gradient(GradientContext&);
void mean_variance_gradient(GradientContext&);

}  // namespace tandem
