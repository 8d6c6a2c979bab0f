// The arithmetic of ONNX Resize (opset 19) along one axis: which elements of the operand make an output element, with which weights.
// Formulas: the operator's text; coordinates are computed in double.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

enum class ResizeMode : std::uint8_t { kNearest, kLinear, kCubic };
enum class ResizeCoordinates : std::uint8_t { kHalfPixel, kHalfPixelSymmetric, kPytorchHalfPixel, kAlignCorners, kAsymmetric, kCropAndResize };
enum class NearestMode : std::uint8_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };

struct ResizeRule {
  ResizeMode mode = ResizeMode::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  NearestMode nearest = NearestMode::kRoundPreferFloor;
  double cubic_a = -0.75;
  bool exclude_outside = false, antialias = false;
};

// Attribute values to the enumerations; throw InvalidModel naming the value. "tf_half_pixel_for_nn" is what it was: half pixels without the
// shift back.
ResizeMode resize_mode(const std::string&);
ResizeCoordinates resize_coordinates(const std::string&);
NearestMode nearest_mode(const std::string&);

struct ResizeAxis {
  std::int64_t in = 1, out = 1;
  double scale = 1;   // output elements per operand element
  double length = 1;  // of the output before it was rounded down: scale * in
  double roi_start = 0, roi_end = 1;
  bool half_pixel_without_shift = false;  // tf_half_pixel_for_nn
  bool identity = true;                   // output element i is operand element i
};

// Output element i is the sum of weight[k] * operand[index[k]] for k in [first[i], first[i + 1]). Output elements before inside_begin and
// from inside_end on lie outside the operand (kCropAndResize alone): they are the extrapolation value.
struct ResizeTaps {
  std::vector<std::int64_t> first, index;
  std::vector<double> weight;
  std::int64_t inside_begin = 0, inside_end = 0;
};

// Throws Unsupported when there would be absurdly many. An axis with outputs must have operand elements.
ResizeTaps resize_taps(const ResizeRule&, const ResizeAxis&);

}  // namespace tandem
