// What the quantised operators share: 8-bit operands with zero points, sums in int32 (which wrap around), results scaled, rounded half to
// even and saturated.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "runtime/ops/op.h"

namespace tandem {

// An 8-bit operand or zero point at run time; an absent zero point is 0 everywhere.
struct Bytes8 {
  const void* data = nullptr;
  bool is_signed = false, one_value = true;  // one_value: the same for every index

  std::int32_t at(std::int64_t i) const {
    if (!data) return 0;
    const std::int64_t k = one_value ? 0 : i;
    return is_signed ? std::int32_t{static_cast<const std::int8_t*>(data)[k]} : std::int32_t{static_cast<const std::uint8_t*>(data)[k]};
  }
  static Bytes8 of(const KernelArgs& k, std::size_t operand, const TensorDesc& desc) {
    return {desc ? k.in[operand] : nullptr, desc.dtype == DType::kI8, !desc || desc.size() == 1};
  }
};

// saturate(round(sum * scale) + zero_point); a scale that is no number gives the least value.
inline std::int32_t requantize(std::int32_t sum, float scale, std::int32_t zero_point, bool is_signed) {
  const float least = is_signed ? -128.0f : 0.0f, most = is_signed ? 127.0f : 255.0f;
  const float v = std::nearbyint(static_cast<float>(sum) * scale) + static_cast<float>(zero_point);
  return static_cast<std::int32_t>(v > least ? std::min(v, most) : least);
}

// Checks of the shape pass; they throw InvalidModel or Unsupported. Operand i is int8 or uint8.
void expect_bytes(const InferContext&, std::size_t i);
// Operand i, where present, is a zero point of the type of operand `of`: one element or, where `channels` is not 0, one for each of them.
void expect_zero_point(const InferContext&, std::size_t i, std::size_t of, std::int64_t channels);
// Operand i is a float32 scale; counts as above.
void expect_scale(const InferContext&, std::size_t i, std::int64_t channels);

}  // namespace tandem
