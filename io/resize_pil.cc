// Pillow's resampling: for each target pixel the kernel, widened by the ratio when shrinking, is sampled at the source pixels under it
// and normalised in double precision, then turned to 22-bit fixed point.
#include <algorithm>
#include <cmath>

#include "io/resize_kernels.h"

namespace tandem::io {
namespace {

constexpr int kBits = 22;
constexpr int kHalf = 1 << (kBits - 1);

double triangle(double x) {
  x = std::abs(x);
  return x < 1 ? 1 - x : 0;
}

double keys_cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

// The weights of one axis: target pixel i is the sum over k < count[i] of source pixel first[i] + k times weights[i * taps + k].
struct Kernel {
  int taps = 0;
  std::vector<int> first, count, weights;
};

// For the target pixels [begin, begin + length) of `out`.
Kernel make_kernel(bool bicubic, int in, int out, int begin, int length) {
  const double scale = static_cast<double>(in) / out;
  const double widening = std::max(scale, 1.0);
  const double support = (bicubic ? 2.0 : 1.0) * widening;
  Kernel kernel;
  kernel.taps = static_cast<int>(std::ceil(support)) * 2 + 1;
  kernel.weights.resize(static_cast<std::size_t>(length) * static_cast<std::size_t>(kernel.taps));
  std::vector<double> exact(static_cast<std::size_t>(kernel.taps));
  int* weights = kernel.weights.data();
  for (int i = begin; i < begin + length; ++i, weights += kernel.taps) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(static_cast<int>(centre - support + 0.5), 0);
    const int count = std::min(static_cast<int>(centre + support + 0.5), in) - first;
    double sum = 0;
    for (int k = 0; k < count; ++k) {
      const double x = (k + first - centre + 0.5) * (1.0 / widening);
      sum += exact[static_cast<std::size_t>(k)] = bicubic ? keys_cubic(x) : triangle(x);
    }
    for (int k = 0; k < count; ++k) {
      double w = exact[static_cast<std::size_t>(k)];
      if (sum != 0) w /= sum;
      weights[k] = static_cast<int>(w * (1 << kBits) + (w < 0 ? -0.5 : 0.5));
    }
    kernel.first.push_back(first);
    kernel.count.push_back(count);
  }
  return kernel;
}

std::uint8_t to_byte(int sum) { return static_cast<std::uint8_t>(std::clamp(sum >> kBits, 0, 255)); }

Pixels make_pixels(int height, int width, int channels) {
  return {height, width, channels,
          std::vector<std::uint8_t>(static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * static_cast<std::size_t>(channels))};
}

template <int kChannels>
void sum_along_x(const Kernel& kernel, PixelView in, int first_row, Pixels& out) {
  const std::size_t in_row = static_cast<std::size_t>(in.width) * kChannels;
  std::uint8_t* to = out.data.data();
  for (int y = 0; y < out.height; ++y) {
    const std::uint8_t* row = in.data + static_cast<std::size_t>(first_row + y) * in_row;
    const int* weights = kernel.weights.data();
    for (int x = 0; x < out.width; ++x, to += kChannels, weights += kernel.taps) {
      const std::uint8_t* from = row + static_cast<std::size_t>(kernel.first[static_cast<std::size_t>(x)]) * kChannels;
      const int count = kernel.count[static_cast<std::size_t>(x)];
      int sum[kChannels];
      for (int& s : sum) s = kHalf;
      for (int k = 0; k < count; ++k, from += kChannels)
        for (int c = 0; c < kChannels; ++c) sum[c] += from[c] * weights[k];
      for (int c = 0; c < kChannels; ++c) to[c] = to_byte(sum[c]);
    }
  }
}

// The source rows [first_row, first_row + rows), resampled along x.
Pixels along_x(const Kernel& kernel, PixelView in, int first_row, int rows) {
  Pixels out = make_pixels(rows, static_cast<int>(kernel.first.size()), in.channels);
  switch (in.channels) {
    case 1:
      sum_along_x<1>(kernel, in, first_row, out);
      break;
    case 2:
      sum_along_x<2>(kernel, in, first_row, out);
      break;
    case 3:
      sum_along_x<3>(kernel, in, first_row, out);
      break;
    default:
      sum_along_x<4>(kernel, in, first_row, out);
  }
  return out;
}

// Resampled along y; row 0 of `in` is row `first_row` of what the kernel was made for.
Pixels along_y(const Kernel& kernel, PixelView in, int first_row) {
  Pixels out = make_pixels(static_cast<int>(kernel.first.size()), in.width, in.channels);
  const std::size_t row = static_cast<std::size_t>(in.width) * static_cast<std::size_t>(in.channels);
  std::vector<int> sums(row);
  int* sum = sums.data();
  const int* weights = kernel.weights.data();
  std::uint8_t* to = out.data.data();
  for (std::size_t y = 0; y < kernel.first.size(); ++y, weights += kernel.taps, to += row) {
    std::fill(sums.begin(), sums.end(), kHalf);
    const std::uint8_t* from = in.data + static_cast<std::size_t>(kernel.first[y] - first_row) * row;
    for (int k = 0; k < kernel.count[y]; ++k, from += row) {
      const int weight = weights[k];
      for (std::size_t i = 0; i < row; ++i) sum[i] += from[i] * weight;
    }
    for (std::size_t i = 0; i < row; ++i) to[i] = to_byte(sum[i]);
  }
  return out;
}

}  // namespace

Pixels resize_pil(bool bicubic, PixelView in, int height, int width, const Window& window) {
  const Kernel rows = make_kernel(bicubic, in.height, height, window.y, window.height);
  const Kernel columns = make_kernel(bicubic, in.width, width, window.x, window.width);
  // At its own size an axis is left alone: the kernel would be 1 at one pixel, which the fixed point keeps exactly.
  const bool keeps_rows = height == in.height && window.height == height, keeps_columns = width == in.width && window.width == width;
  if (keeps_columns) return along_y(rows, in, 0);
  if (keeps_rows) return along_x(columns, in, 0, height);
  // Pillow 13 takes y first where the height shrinks by more than twice as many pixels as the width; earlier releases never did.
  const std::int64_t rows_less = in.height - height, columns_less = in.width - width;
  if (rows_less > 0 && rows_less > 2 * columns_less) return along_x(columns, along_y(rows, in, 0).view(), 0, window.height);
  // The second pass reads only these rows.
  const int first = rows.first.front(), last = rows.first.back() + rows.count.back();
  return along_y(rows, along_x(columns, in, first, last - first).view(), first);
}

}  // namespace tandem::io
