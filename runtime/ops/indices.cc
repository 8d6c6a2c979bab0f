#include "runtime/ops/indices.h"

#include <fmt/format.h>

namespace tandem {

void expect_indices(const InferContext& c, std::size_t i) {
  static constexpr DType kTypes[] = {DType::kI32, DType::kI64};
  c.expect_dtype(i, kTypes);
}

void check_known_indices(const InferContext& c, std::size_t i, std::int64_t dim) {
  const Tensor* known = c.constant(i);
  if (!known) return;
  for (const std::int64_t v : known->to_ints()) {
    if (v < -dim || v >= dim) throw InvalidModel(fmt::format("index {} is outside [{}, {}]", v, -dim, dim - 1));
  }
}

void index_out_of_range(std::int64_t index, std::int64_t dim) {
  throw InvalidData(fmt::format("index {} is outside [{}, {}]", index, -dim, dim - 1));
}

}  // namespace tandem
