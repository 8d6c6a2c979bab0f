// Resampling of 8-bit images, each kind equal to one well-known library (bit for bit, except where said).
//
// kPilBicubic, kPilBilinear: Image.resize of Pillow 13.0: separable, the kernel widened by the ratio (antialiased), rounded to 8 bits
//   between and after the passes, 22-bit fixed point. Bicubic is Keys' cubic with a = -0.5. First along x, then along y; the other way round
//   where both sizes change and the height shrinks by more than twice as many pixels as the width. Pillow 9.4 to 12.2 give the same bytes
//   everywhere but there, where they go along x first: a level apart in smooth pictures, up to 30 in noise that the first pass clips.
// kNearest: Pillow's NEAREST: the source pixel under the centre of the target pixel.
// kCvLinear, kCvArea: OpenCV's INTER_LINEAR (half-pixel centres, no antialias, 11-bit fixed point) and INTER_AREA, including OpenCV's
//   switches: linear at exactly half size is the mean of 2 x 2, area that enlarges either axis is linear.
// kTfBilinear: tf.image.resize(bilinear, antialias=False): half-pixel centres, float arithmetic and result.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tandem::io {

enum class ResizeKind { kPilBicubic, kPilBilinear, kTfBilinear, kCvLinear, kCvArea, kNearest };

// The option's words: "pil-bicubic" "pil-bilinear" "tf-bilinear" "cv-linear" "cv-area" "nearest".
std::string_view name_of(ResizeKind);
// Throws UsageError listing the words when `name` is none of them.
ResizeKind resize_kind(std::string_view name);

// height x width x channels bytes, row-major, owned by the caller.
struct PixelView {
  const std::uint8_t* data = nullptr;
  int height = 0, width = 0, channels = 3;
};

struct Pixels {
  int height = 0, width = 0, channels = 3;
  std::vector<std::uint8_t> data;
  PixelView view() const { return {data.data(), height, width, channels}; }
};

// A part of the resized image.
struct Window {
  int y = 0, x = 0, height = 0, width = 0;
};

// The window of `in` resized to height x width; only the window is computed, and its bits are those of the whole. Any kind but kTfBilinear.
// Sizes are at least 1 and the window lies inside (UsageError otherwise); 1 to 4 channels. Pure; safe from any thread.
Pixels resize(ResizeKind, PixelView in, int height, int width, const Window&);
Pixels resize(ResizeKind, PixelView in, int height, int width);
// kTfBilinear: writes height x width x channels floats of 0..255.
void resize_tf_bilinear(PixelView, int height, int width, std::span<float> out);

}  // namespace tandem::io
