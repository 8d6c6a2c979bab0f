// OpenCV's resize for 8-bit images: INTER_LINEAR in 11-bit fixed point, INTER_AREA in float.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "io/resize_kernels.h"

namespace tandem::io {
namespace {

// Rounds half to even, as OpenCV's saturating casts.
template <class T>
T rounded(float v) {
  const long r = std::lrintf(v);
  return static_cast<T>(std::clamp<long>(r, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

struct LinearTap {
  int low, high;
  short low_weight, high_weight;  // of 2048
};

// `area`: the taps with which INTER_AREA enlarges: a target pixel blends only where it straddles two source pixels. At the border OpenCV
// drops the weight along x, but blends the border row with itself along y (which cuts twice, so it is another rounding).
std::vector<LinearTap> linear_taps(int in, int out, int begin, int length, bool area, bool along_x) {
  const double inverse = static_cast<double>(out) / in, scale = 1.0 / inverse;
  std::vector<LinearTap> taps;
  for (int i = begin; i < begin + length; ++i) {
    float at = 0;
    int low = 0;
    if (area) {
      low = static_cast<int>(std::floor(i * scale));
      at = static_cast<float>((i + 1) - (low + 1) * inverse);
      at = at <= 0 ? 0.0f : at - std::floor(at);
    } else {
      at = static_cast<float>((i + 0.5) * scale - 0.5);
      low = static_cast<int>(std::floor(at));
      at -= static_cast<float>(low);
    }
    if (along_x && (low < 0 || low >= in - 1)) at = 0;
    if (along_x) low = std::max(low, 0);
    taps.push_back({std::clamp(low, 0, in - 1), std::clamp(low + 1, 0, in - 1), rounded<short>((1.0f - at) * 2048), rounded<short>(at * 2048)});
  }
  return taps;
}

Pixels resize_linear(PixelView in, Pixels out, int height, int width, const Window& window, bool area) {
  const int channels = in.channels;
  const std::size_t in_row = static_cast<std::size_t>(in.width) * static_cast<std::size_t>(channels);
  const std::size_t out_row = static_cast<std::size_t>(out.width) * static_cast<std::size_t>(channels);
  const std::vector<LinearTap> columns = linear_taps(in.width, width, window.x, window.width, area, true);
  const auto along_x = [&](int row, std::vector<int>& sums) {
    const std::uint8_t* from = in.data + static_cast<std::size_t>(row) * in_row;
    int* to = sums.data();
    for (const LinearTap& tap : columns)
      for (int c = 0; c < channels; ++c) *to++ = from[tap.low * channels + c] * tap.low_weight + from[tap.high * channels + c] * tap.high_weight;
  };
  std::vector<int> low(out_row), high(out_row);
  std::uint8_t* to = out.data.data();
  for (const LinearTap& tap : linear_taps(in.height, height, window.y, window.height, area, false)) {
    along_x(tap.low, low);
    along_x(tap.high, high);
    for (std::size_t i = 0; i < out_row; ++i) {
      const int sum = ((tap.low_weight * (low[i] >> 4)) >> 16) + ((tap.high_weight * (high[i] >> 4)) >> 16);
      *to++ = static_cast<std::uint8_t>(std::clamp((sum + 2) >> 2, 0, 255));
    }
  }
  return out;
}

// Shrinking by whole factors: the rounded mean of each block.
Pixels resize_blocks(PixelView in, Pixels out, const Window& window, int factor_y, int factor_x) {
  const int channels = in.channels;
  const float share = 1.0f / static_cast<float>(factor_x * factor_y);
  std::uint8_t* to = out.data.data();
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x)
      for (int c = 0; c < channels; ++c) {
        std::int64_t sum = 0;
        for (int dy = 0; dy < factor_y; ++dy)
          for (int dx = 0; dx < factor_x; ++dx)
            sum += in.data[(static_cast<std::int64_t>((window.y + y) * factor_y + dy) * in.width + (window.x + x) * factor_x + dx) * channels + c];
        *to++ = factor_x == 2 && factor_y == 2 ? static_cast<std::uint8_t>((sum + 2) >> 2)
                                               : rounded<std::uint8_t>(static_cast<float>(static_cast<int>(sum)) * share);
      }
  return out;
}

struct AreaTap {
  int target, source;
  float weight;
};

// How much of each source pixel falls in each target pixel of [begin_target, begin_target + length), in the order in which OpenCV adds them. Targets
// count from `begin_target`.
std::vector<AreaTap> area_taps(int in, int begin_target, int length, double scale) {
  std::vector<AreaTap> taps;
  for (int i = 0; i < length; ++i) {
    const double begin = (begin_target + i) * scale, end = begin + scale;
    const double width = std::min(scale, in - begin);
    int first = static_cast<int>(std::ceil(begin)), last = static_cast<int>(std::floor(end));
    last = std::min(last, in - 1);
    first = std::min(first, last);
    if (first - begin > 1e-3) taps.push_back({i, first - 1, static_cast<float>((first - begin) / width)});
    for (int s = first; s < last; ++s) taps.push_back({i, s, static_cast<float>(1.0 / width)});
    if (end - last > 1e-3) taps.push_back({i, last, static_cast<float>(std::min(std::min(end - last, 1.0), width) / width)});
  }
  return taps;
}

Pixels resize_area(PixelView in, Pixels out, const Window& window, double scale_y, double scale_x) {
  const int channels = in.channels;
  const std::size_t in_row = static_cast<std::size_t>(in.width) * static_cast<std::size_t>(channels);
  const std::size_t out_row = static_cast<std::size_t>(out.width) * static_cast<std::size_t>(channels);
  const std::vector<AreaTap> columns = area_taps(in.width, window.x, window.width, scale_x);
  std::vector<float> line(out_row), sum(out_row);
  int target = 0;
  const auto flush = [&] {
    std::uint8_t* to = &out.data[static_cast<std::size_t>(target) * out_row];
    for (std::size_t i = 0; i < out_row; ++i) to[i] = rounded<std::uint8_t>(sum[i]);
  };
  for (const AreaTap& row : area_taps(in.height, window.y, window.height, scale_y)) {
    std::fill(line.begin(), line.end(), 0.0f);
    const std::uint8_t* from = in.data + static_cast<std::size_t>(row.source) * in_row;
    for (const AreaTap& tap : columns)
      for (int c = 0; c < channels; ++c)
        line[static_cast<std::size_t>(tap.target * channels + c)] += static_cast<float>(from[tap.source * channels + c]) * tap.weight;
    if (row.target != target) {
      flush();
      target = row.target;
      for (std::size_t i = 0; i < out_row; ++i) sum[i] = row.weight * line[i];
    } else {
      for (std::size_t i = 0; i < out_row; ++i) sum[i] += row.weight * line[i];
    }
  }
  flush();
  return out;
}

}  // namespace

Pixels resize_cv(bool area, PixelView in, int height, int width, const Window& window) {
  Pixels out{window.height, window.width, in.channels, {}};
  out.data.resize(static_cast<std::size_t>(window.height) * static_cast<std::size_t>(window.width) * static_cast<std::size_t>(in.channels));
  const double scale_x = 1.0 / (static_cast<double>(width) / in.width), scale_y = 1.0 / (static_cast<double>(height) / in.height);
  const int factor_x = static_cast<int>(std::lrint(scale_x)), factor_y = static_cast<int>(std::lrint(scale_y));
  constexpr double kSame = std::numeric_limits<double>::epsilon();
  const bool whole = std::abs(scale_x - factor_x) < kSame && std::abs(scale_y - factor_y) < kSame;
  const bool half = whole && factor_x == 2 && factor_y == 2, same = whole && factor_x == 1 && factor_y == 1;
  if (half || same) return resize_blocks(in, std::move(out), window, factor_y, factor_x);
  if (!area || scale_x < 1 || scale_y < 1) return resize_linear(in, std::move(out), height, width, window, area);
  if (whole) return resize_blocks(in, std::move(out), window, factor_y, factor_x);
  return resize_area(in, std::move(out), window, scale_y, scale_x);
}

}  // namespace tandem::io
