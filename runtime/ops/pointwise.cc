#include "runtime/ops/pointwise.h"

namespace tandem {

void infer_unary(InferContext& c, std::span<const DType> allowed, DType result) {
  c.expect_dtype(0, allowed);
  c.set_output(0, result == DType::kNone ? c.dtype(0) : result, c.shape(0));
}

void infer_broadcast(InferContext& c, std::span<const DType> allowed, DType result) {
  c.expect_dtype(0, allowed);
  Shape shape = c.shape(0);
  for (std::size_t i = 1; i < c.inputs(); ++i) {
    c.expect_same_dtype(0, i);
    shape = broadcast(shape, c.shape(i));
  }
  c.set_output(0, result == DType::kNone ? c.dtype(0) : result, std::move(shape));
}

}  // namespace tandem
