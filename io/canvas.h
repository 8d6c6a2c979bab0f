// Images while they become samples: interleaved pixels as floats, and what augmentation does to them. Values are on the 0..255 scale where they
// come from an image; samples that are no images keep their own scale.
#pragma once

#include <span>
#include <vector>

#include "io/resize.h"

namespace tandem::io {

enum class InputLayout { kNchw, kNhwc };

struct Canvas {
  int height = 0, width = 0, channels = 3;
  std::vector<float> values;  // height x width x channels
  float* pixel(int y, int x) {
    return &values[(static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)) * depth()];
  }
  const float* pixel(int y, int x) const { return const_cast<Canvas*>(this)->pixel(y, x); }
  std::size_t depth() const { return static_cast<std::size_t>(channels); }
};

// A sample in the network's layout as a canvas, and back; sizes are the caller's care.
Canvas canvas_of(std::span<const float> sample, InputLayout, int height, int width, int channels);
void write_sample(const Canvas&, InputLayout, std::span<float> out);

// The part of `from` whose upper left corner lies at (-top, -left) of a height x width canvas; what it does not cover is `fill`.
Canvas placed(const Canvas& from, int top, int left, int height, int width, float fill);

void flip_horizontal(Canvas&);
void flip_vertical(Canvas&);
// The picture turned counter-clockwise about its middle, bilinear; what comes from outside is `fill` (one value for each channel).
void rotate(Canvas&, double degrees, std::span<const float> fill);
// The rectangle becomes `fill` (one value for each channel).
void erase(Canvas&, const Window&, std::span<const float> fill);

// torchvision's adjustments on the 0..255 scale, results cut to it. Gray is 0.299 R + 0.587 G + 0.114 B.
void adjust_brightness(Canvas&, float factor);  // v * factor
void adjust_contrast(Canvas&, float factor);    // between the mean of the gray picture (0) and the picture (1), and beyond
void adjust_saturation(Canvas&, float factor);  // between the gray picture (0) and the picture (1), and beyond; one channel: nothing
void adjust_hue(Canvas&, float turn);           // the hue of HSV by `turn` of a full circle; one channel: nothing

}  // namespace tandem::io
