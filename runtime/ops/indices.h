// Index operands (int32 or int64; negative ones count from the end) of gathering and scattering operators.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/ops/op.h"

namespace tandem {

// Throws InvalidModel unless operand i is int32 or int64.
void expect_indices(const InferContext&, std::size_t i);
// Throws InvalidModel when operand i is constant and one of its values is outside [-dim, dim).
void check_known_indices(const InferContext&, std::size_t i, std::int64_t dim);
[[noreturn]] void index_out_of_range(std::int64_t index, std::int64_t dim);  // InvalidData

// The values of an index operand while a kernel runs.
class Indices {
 public:
  Indices(DType t, const void* data) : wide_(t == DType::kI64), data_(data) {}
  // Value i, brought to [0, dim). Throws InvalidData when it is out of range.
  std::int64_t at(std::int64_t i, std::int64_t dim) const {
    const std::int64_t given = wide_ ? static_cast<const std::int64_t*>(data_)[i] : static_cast<const std::int32_t*>(data_)[i];
    if (given < -dim || given >= dim) index_out_of_range(given, dim);
    return given < 0 ? given + dim : given;
  }

 private:
  bool wide_;
  const void* data_;
};

}  // namespace tandem
