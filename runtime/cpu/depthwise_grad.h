// The gradient of a depthwise convolution's weights on channels-last images, vectorised over channels with run-time dispatch.
//
// Every sum runs over the output positions in an order that depends on the window and the rows given alone. Nothing allocates; may be
// called from several threads.
#pragma once

#include "runtime/cpu/depthwise.h"

namespace tandem {

// Output rows [first_row, last_row) of one image.
struct DepthwiseGradBlock {
  DepthwiseWindow window;  // the convolution's
  std::int64_t channels = 0;
  DType type = DType::kF32;  // of x and dy: f32 or bf16
  const void* x = nullptr;   // channel 0 of the image's first pixel, and elements from one pixel to the next
  std::int64_t pitch = 0;
  const void* dy = nullptr;
  std::int64_t dy_pitch = 0;
  std::int64_t first_row = 0, last_row = 0;
  float* sums = nullptr;  // [vector of channels][tap][lane] (depthwise_packed_floats()), added to
};
void depthwise_grad_run(const DepthwiseGradBlock&);

}  // namespace tandem
