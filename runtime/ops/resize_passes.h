// Linear and cubic Resize: one pass along each axis (the weights are a product over the axes).
#pragma once

#include "runtime/ops/op.h"
#include "runtime/ops/resize_taps.h"

namespace tandem {

// Adds the stages that interpolate operand 0 into output 0 along every axis of `axes` that is not the identity, of which there must be one;
// takes shared memory for what lies between. Integers are interpolated in double and truncated, as a cast does.
void add_resize_passes(Kernel&, const TensorDesc& in, const TensorDesc& out, const ResizeRule&, const std::vector<ResizeAxis>& axes);

}  // namespace tandem
