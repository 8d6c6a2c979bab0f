#include "runtime/ops/resize_taps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"

namespace tandem {
namespace {

constexpr std::size_t kMostTaps = std::size_t{1} << 26;

double coordinate(const ResizeRule& rule, const ResizeAxis& a, std::int64_t i) {
  const auto x = static_cast<double>(i), in = static_cast<double>(a.in), out = static_cast<double>(a.out);
  // Where the output's length is exact, multiply before dividing: ties of the nearest neighbour stay ties.
  const auto unscaled = [&](double v) { return a.length == out ? v * in / out : v / a.scale; };
  if (a.half_pixel_without_shift) return unscaled(x + 0.5);
  switch (rule.coordinates) {
    case ResizeCoordinates::kHalfPixel:
      return unscaled(x + 0.5) - 0.5;
    case ResizeCoordinates::kHalfPixelSymmetric:
      return in / 2 * (1 - out / a.length) + unscaled(x + 0.5) - 0.5;
    case ResizeCoordinates::kPytorchHalfPixel:
      return a.out > 1 ? unscaled(x + 0.5) - 0.5 : 0;
    case ResizeCoordinates::kAlignCorners:
      return a.out > 1 ? x * (in - 1) / (a.length - 1) : 0;
    case ResizeCoordinates::kAsymmetric:
      return unscaled(x);
    case ResizeCoordinates::kCropAndResize:
      break;
  }
  if (a.out == 1) return 0.5 * (a.roi_start + a.roi_end) * (in - 1);
  return a.roi_start * (in - 1) + x * (a.roi_end - a.roi_start) * (in - 1) / (out - 1);
}

double nearest(NearestMode mode, double x) {
  switch (mode) {
    case NearestMode::kRoundPreferFloor:
      return std::ceil(x - 0.5);
    case NearestMode::kRoundPreferCeil:
      return std::floor(x + 0.5);
    case NearestMode::kFloor:
      return std::floor(x);
    case NearestMode::kCeil:
      break;
  }
  return std::ceil(x);
}

// Keys' cubic convolution and the triangle, as functions of the distance.
double kernel_weight(const ResizeRule& rule, double distance) {
  const double d = std::abs(distance), a = rule.cubic_a;
  if (rule.mode == ResizeMode::kLinear) return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

class Builder {
 public:
  Builder(const ResizeRule& rule, const ResizeAxis& axis) : rule_(rule), axis_(axis) { taps_.first.push_back(0); }

  void add(double x) {
    if (rule_.mode == ResizeMode::kNearest) {
      push(nearest(rule_.nearest, std::clamp(x, -1.0, static_cast<double>(axis_.in))), 1);
    } else {
      add_weighted(x);
    }
    taps_.first.push_back(static_cast<std::int64_t>(taps_.index.size()));
  }
  ResizeTaps take() { return std::move(taps_); }

 private:
  void add_weighted(double x) {
    const double squeeze = rule_.antialias ? std::min(axis_.scale, 1.0) : 1.0;
    const double reach = (rule_.mode == ResizeMode::kLinear ? 1 : 2) / squeeze;
    const auto in = static_cast<double>(axis_.in);
    x = std::clamp(x, -reach - 1, in + reach);  // beyond that it is the edge element alone
    const std::size_t begin = taps_.index.size();
    double sum = 0;
    for (double i = std::floor(x - reach) + 1; i < x + reach; ++i) {
      const bool outside = i < 0 || i >= in;
      const double w = outside && rule_.exclude_outside ? 0 : kernel_weight(rule_, (i - x) * squeeze);
      if (w == 0) continue;
      sum += w;
      push(i, w);
    }
    if (sum == 0 || taps_.index.size() == begin) {  // everything was excluded: the nearest element
      taps_.index.resize(begin);
      taps_.weight.resize(begin);
      push(std::floor(x + 0.5), 1);
    } else if (rule_.antialias || rule_.exclude_outside) {
      for (std::size_t k = begin; k < taps_.weight.size(); ++k) taps_.weight[k] /= sum;
    }
  }

  void push(double i, double weight) {
    const auto index = static_cast<std::int64_t>(std::clamp(i, 0.0, static_cast<double>(axis_.in - 1)));
    const bool again = static_cast<std::int64_t>(taps_.index.size()) > taps_.first.back() && taps_.index.back() == index;
    if (again) {
      taps_.weight.back() += weight;  // beyond the edge: the edge element
      return;
    }
    if (taps_.index.size() >= kMostTaps) throw Unsupported(fmt::format("resizing {} elements to {} takes too many weights", axis_.in, axis_.out));
    taps_.index.push_back(index);
    taps_.weight.push_back(weight);
  }

  const ResizeRule& rule_;
  const ResizeAxis& axis_;
  ResizeTaps taps_;
};

template <class T>
T named(const std::string& text, const char* what, std::initializer_list<std::pair<const char*, T>> names) {
  std::string known;
  for (const auto& [name, value] : names) {
    if (text == name) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  }
  throw InvalidModel(fmt::format("{} must be one of {}, is '{}'", what, known, text));
}

}  // namespace

ResizeMode resize_mode(const std::string& text) {
  return named<ResizeMode>(text, "mode", {{"nearest", ResizeMode::kNearest}, {"linear", ResizeMode::kLinear}, {"cubic", ResizeMode::kCubic}});
}

ResizeCoordinates resize_coordinates(const std::string& text) {
  return named<ResizeCoordinates>(text, "coordinate_transformation_mode",
                                  {{"half_pixel", ResizeCoordinates::kHalfPixel},
                                   {"half_pixel_symmetric", ResizeCoordinates::kHalfPixelSymmetric},
                                   {"pytorch_half_pixel", ResizeCoordinates::kPytorchHalfPixel},
                                   {"align_corners", ResizeCoordinates::kAlignCorners},
                                   {"asymmetric", ResizeCoordinates::kAsymmetric},
                                   {"tf_half_pixel_for_nn", ResizeCoordinates::kHalfPixel},
                                   {"tf_crop_and_resize", ResizeCoordinates::kCropAndResize}});
}

NearestMode nearest_mode(const std::string& text) {
  return named<NearestMode>(text, "nearest_mode",
                            {{"round_prefer_floor", NearestMode::kRoundPreferFloor},
                             {"round_prefer_ceil", NearestMode::kRoundPreferCeil},
                             {"floor", NearestMode::kFloor},
                             {"ceil", NearestMode::kCeil}});
}

ResizeTaps resize_taps(const ResizeRule& rule, const ResizeAxis& axis) {
  Builder builder(rule, axis);
  std::int64_t begin = axis.out, end = 0;
  for (std::int64_t i = 0; i < axis.out; ++i) {
    const double x = coordinate(rule, axis, i);
    const bool inside = rule.coordinates != ResizeCoordinates::kCropAndResize || (x >= 0 && x <= static_cast<double>(axis.in - 1));
    if (inside) {
      begin = std::min(begin, i);
      end = i + 1;
    }
    builder.add(x);
  }
  ResizeTaps taps = builder.take();
  taps.inside_begin = begin;
  taps.inside_end = std::max(begin, end);
  return taps;
}

}  // namespace tandem
