// Depthwise convolution on channels-last images, multiplier 1, vectorised over channels with run-time dispatch.
//
// Every output is one chain of multiply-adds that starts at the bias; its order depends on the window alone, so bits do not depend on how
// pixels are cut. Nothing allocates; all functions may be called from several threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/dtype.h"
#include "runtime/cpu/activation.h"

namespace tandem {

// Rows first, columns second.
struct DepthwiseWindow {
  std::int64_t kernel[2], strides[2], dilations[2], begin[2];
  std::int64_t in[2], out[2];  // sizes
  std::int64_t taps() const { return kernel[0] * kernel[1]; }
};

std::int64_t depthwise_lanes();  // channels of one vector
inline std::int64_t depthwise_packed_floats(std::int64_t channels, std::int64_t taps) {
  return (channels + depthwise_lanes() - 1) / depthwise_lanes() * depthwise_lanes() * taps;
}
// [vector][tap][lane] from load(channel, tap) -> float, zero past the last channel.
template <class Load>
void depthwise_pack(std::int64_t channels, std::int64_t taps, float* packed, Load&& load) {
  const std::int64_t lanes = depthwise_lanes();
  for (std::int64_t first = 0; first < channels; first += lanes) {
    for (std::int64_t t = 0; t < taps; ++t) {
      for (std::int64_t c = first; c < first + lanes; ++c) *packed++ = c < channels ? load(c, t) : 0.0f;
    }
  }
}

// Output pixels [first, last) of one image, counted along its rows.
struct DepthwiseBlock {
  DepthwiseWindow window;
  std::int64_t channels = 0, first = 0, last = 0;
  DType type = DType::kF32;  // of x: f32 or bf16
  const void* x = nullptr;   // channel 0 of the image's first pixel
  std::int64_t pitch = 0;    // elements from one pixel of x to the next
  bool pre_relu = false;
  const float* packed = nullptr;
  const float* bias = nullptr;  // `channels` floats, or null
  float* y = nullptr;           // pixel `first`; always f32
  std::int64_t y_pitch = 0;
  Activation activation;
};
void depthwise_run(const DepthwiseBlock&);

}  // namespace tandem
