// Linear maps that are a product over the axes, one pass along each: linear and cubic Resize, and the transposes of resizing and padding.
#pragma once

#include "runtime/ops/op.h"
#include "runtime/ops/resize_taps.h"

namespace tandem {

struct AxisTaps {
  std::size_t axis;
  ResizeTaps taps;
};

// Adds the stages that map operand 0 to output 0 (floats) along one axis after the other, of which there must be one; takes shared memory
// for what lies between.
void add_axis_passes(Kernel&, const TensorDesc& in, const TensorDesc& out, const std::vector<AxisTaps>&);

// Adds the stages that interpolate operand 0 into output 0 along every axis of `axes` that is not the identity, of which there must be one;
// takes shared memory for what lies between. Integers are interpolated in double and truncated, as a cast does.
void add_resize_passes(Kernel&, const TensorDesc& in, const TensorDesc& out, const ResizeRule&, const std::vector<ResizeAxis>& axes);

}  // namespace tandem
