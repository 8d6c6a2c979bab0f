#include "runtime/ops/requantize.h"

#include <fmt/format.h>

namespace tandem {
namespace {

constexpr DType kBytes[] = {DType::kI8, DType::kU8};

void expect_count(const InferContext& c, std::size_t i, std::int64_t channels, const char* what) {
  const std::int64_t n = elements(c.shape(i));
  if (n == 1 || (channels > 0 && n == channels)) return;
  throw Unsupported(fmt::format("operand {}, a {}, must have one element{}, has shape {}", i, what,
                                channels > 0 ? fmt::format(" or {} (one for each output channel)", channels) : "", to_string(c.shape(i))));
}

}  // namespace

void expect_bytes(const InferContext& c, std::size_t i) { c.expect_dtype(i, kBytes); }

void expect_zero_point(const InferContext& c, std::size_t i, std::size_t of, std::int64_t channels) {
  if (!c.has_input(i)) return;
  c.expect_same_dtype(i, of);
  expect_count(c, i, channels, "zero point");
}

void expect_scale(const InferContext& c, std::size_t i, std::int64_t channels) {
  constexpr DType kScale[] = {DType::kF32};
  c.expect_dtype(i, kScale);
  expect_count(c, i, channels, "scale");
}

}  // namespace tandem
