// One element of a float tensor, for kernels that are right for every type and fast for none.
#pragma once

#include <cstdint>

#include "runtime/base/dtype.h"

namespace tandem {

inline double load_float(const void* data, DType t, std::int64_t i) {
  if (t == DType::kF64) return static_cast<const double*>(data)[i];
  if (t == DType::kBF16) return static_cast<double>(static_cast<float>(static_cast<const BFloat16*>(data)[i]));
  return static_cast<double>(static_cast<const float*>(data)[i]);
}

inline void store_float(void* data, DType t, std::int64_t i, double v) {
  if (t == DType::kF64)
    static_cast<double*>(data)[i] = v;
  else if (t == DType::kBF16)
    static_cast<BFloat16*>(data)[i] = BFloat16(static_cast<float>(v));
  else
    static_cast<float*>(data)[i] = static_cast<float>(v);
}

}  // namespace tandem
