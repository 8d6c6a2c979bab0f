#include "runtime/ops/shard_merge.h"

namespace tandem {
namespace {

template <class T>
void merge(const T* a, const T* b, T* out, std::int64_t channels) {
  const auto part = [channels](const T* m, std::int64_t c) {
    return Moments{static_cast<double>(m[c]), static_cast<double>(m[channels + c]), static_cast<double>(m[2 * channels + c])};
  };
  for (std::int64_t c = 0; c < channels; ++c) {
    const Moments all = merged(part(a, c), part(b, c));
    out[c] = static_cast<T>(all.n);
    out[channels + c] = static_cast<T>(all.mean);
    out[2 * channels + c] = static_cast<T>(all.m2);
  }
}

}  // namespace

void merge_moments(const float* a, const float* b, float* out, std::int64_t channels) { merge(a, b, out, channels); }
void merge_moments(const double* a, const double* b, double* out, std::int64_t channels) { merge(a, b, out, channels); }

}  // namespace tandem
