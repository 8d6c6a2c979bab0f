// Batch statistics of parts of a batch, and how they are merged (Chan, Golub, LeVeque: "Updating formulae and a pairwise algorithm for
// computing sample variances", 1979).
#pragma once

#include <cstdint>

namespace tandem {

// n values: their number, mean, and sum of squared deviations from it.
struct Moments {
  double n = 0, mean = 0, m2 = 0;
};

inline Moments merged(const Moments& a, const Moments& b) {
  if (a.n == 0) return b;
  if (b.n == 0) return a;
  const double n = a.n + b.n, delta = b.mean - a.mean;
  return {n, a.mean + delta * (b.n / n), a.m2 + b.m2 + delta * delta * (a.n * (b.n / n))};
}

// a, b, out: [3, channels], rows n, mean, M2 (the output of BatchMoments), computed in double. out may be a or b. A part without values
// (n = 0) changes nothing.
void merge_moments(const float* a, const float* b, float* out, std::int64_t channels);
void merge_moments(const double* a, const double* b, double* out, std::int64_t channels);

}  // namespace tandem
