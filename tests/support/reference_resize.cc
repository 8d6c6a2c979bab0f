// Resize: the coordinate transformations and interpolation weights of the standard's text.
#include <algorithm>
#include <cmath>

#include "tests/support/reference.h"

namespace tandem::test::reference {
namespace {

std::int64_t output_size(const Shape& input, const ResizeSpec& spec, std::size_t d) {
  return spec.sizes.empty() ? static_cast<std::int64_t>(std::floor(static_cast<double>(input[d]) * spec.scales[d])) : spec.sizes[d];
}

double scale_of(const Shape& input, const ResizeSpec& spec, std::size_t d) {
  return spec.sizes.empty() ? spec.scales[d] : static_cast<double>(spec.sizes[d]) / static_cast<double>(input[d]);
}

// The coordinate in the input that output coordinate `at` of dimension d samples.
double sampled(const Shape& input, const ResizeSpec& spec, std::size_t d, std::int64_t at) {
  const auto x = static_cast<double>(at), in = static_cast<double>(input[d]);
  const auto out = static_cast<double>(output_size(input, spec, d));
  const double scale = scale_of(input, spec, d);
  // The standard's resized length is scale * length, not rounded (test_resize_downsample_scales_linear_align_corners: 4 * 0.6 = 2.4).
  if (spec.coordinates == "align_corners") return scale * in == 1 ? 0 : x * (in - 1) / (scale * in - 1);
  if (spec.coordinates == "asymmetric") return x / scale;
  if (spec.coordinates == "pytorch_half_pixel" && out <= 1) return 0;
  if (spec.coordinates == "half_pixel_symmetric") {
    const double adjustment = out / (scale * in), centre = in / 2, shift = centre * (1 - adjustment);
    return shift + (x + 0.5) / scale - 0.5;
  }
  return (x + 0.5) / scale - 0.5;
}

double cubic(double t, double a) {
  t = std::abs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  if (t < 2) return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
  return 0;
}

struct Tap {
  std::int64_t at;
  double weight;
};

std::int64_t nearest(double x, const std::string& mode) {
  if (mode == "floor") return static_cast<std::int64_t>(std::floor(x));
  if (mode == "ceil") return static_cast<std::int64_t>(std::ceil(x));
  const double half = std::floor(x) + 0.5;
  if (x == half) return static_cast<std::int64_t>(mode == "round_prefer_ceil" ? std::ceil(x) : std::floor(x));
  return static_cast<std::int64_t>(std::floor(x + 0.5));
}

std::vector<Tap> taps(const Shape& input, const ResizeSpec& spec, std::size_t d, std::int64_t out) {
  const double x = sampled(input, spec, d, out);
  std::vector<Tap> list;
  if (spec.mode == "nearest") {
    list.push_back({nearest(x, spec.nearest_mode), 1});
  } else {
    const auto base = static_cast<std::int64_t>(std::floor(x));
    const std::int64_t before = spec.mode == "cubic" ? 1 : 0, after = spec.mode == "cubic" ? 2 : 1;
    for (std::int64_t at = base - before; at <= base + after; ++at) {
      const double t = x - static_cast<double>(at);
      list.push_back({at, spec.mode == "cubic" ? cubic(t, spec.cubic_a) : std::max(0.0, 1 - std::abs(t))});
    }
  }
  double total = 0;
  for (Tap& t : list) {
    if (spec.exclude_outside && (t.at < 0 || t.at >= input[d])) t.weight = 0;
    total += t.weight;
    t.at = std::clamp<std::int64_t>(t.at, 0, input[d] - 1);  // the edge is repeated
  }
  if (spec.exclude_outside) {
    for (Tap& t : list) t.weight /= total;
  }
  return list;
}

}  // namespace

Array resize(const Array& x, const ResizeSpec& spec) {
  Shape shape;
  for (std::size_t d = 0; d < x.shape.size(); ++d) shape.push_back(output_size(x.shape, spec, d));
  Array y(shape);
  each(shape, [&](const Ints& out) {
    std::vector<std::vector<Tap>> lists;
    Shape counts;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      // A dimension that keeps its size is not sampled.
      const bool kept = shape[d] == x.shape[d] && scale_of(x.shape, spec, d) == 1;
      lists.push_back(kept ? std::vector<Tap>{{out[d], 1}} : taps(x.shape, spec, d, out[d]));
      counts.push_back(static_cast<std::int64_t>(lists.back().size()));
    }
    double sum = 0, terms = 0;
    each(counts, [&](const Ints& k) {
      Ints in(k.size());
      double weight = 1;
      for (std::size_t d = 0; d < k.size(); ++d) {
        const Tap& t = lists[d][static_cast<std::size_t>(k[d])];
        in[d] = t.at;
        weight *= t.weight;
      }
      sum += weight * x.at(in);
      terms += std::abs(weight * x.at(in));
    });
    y.set(out, sum, terms);
  });
  return y;
}

double distance_to_ties(const Shape& input, const ResizeSpec& spec) {
  double least = 1;
  const double tie = spec.nearest_mode == "floor" || spec.nearest_mode == "ceil" ? 0 : 0.5;
  for (std::size_t d = 0; d < input.size(); ++d) {
    for (std::int64_t at = 0; at < output_size(input, spec, d); ++at) {
      const double x = sampled(input, spec, d, at) - tie, away = std::abs(x - std::round(x));
      if (away > 0) least = std::min(least, away);
    }
  }
  return least;
}

}  // namespace tandem::test::reference
