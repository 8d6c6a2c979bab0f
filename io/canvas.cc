#include "io/canvas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace tandem::io {
namespace {

constexpr float kWhite = 255.0f;

float gray_of(const float* rgb) { return 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2]; }

float cut(float v) { return std::clamp(v, 0.0f, kWhite); }

// Hue in turns [0, 1), saturation, value on the scale of the input.
std::array<float, 3> to_hsv(const float* rgb) {
  const float most = std::max({rgb[0], rgb[1], rgb[2]}), least = std::min({rgb[0], rgb[1], rgb[2]}), range = most - least;
  if (range == 0) return {0, 0, most};
  float hue = 0;
  if (most == rgb[0])
    hue = (rgb[1] - rgb[2]) / range;
  else if (most == rgb[1])
    hue = 2 + (rgb[2] - rgb[0]) / range;
  else
    hue = 4 + (rgb[0] - rgb[1]) / range;
  hue /= 6;
  return {hue - std::floor(hue), range / most, most};
}

void from_hsv(const std::array<float, 3>& hsv, float* rgb) {
  const float sector = hsv[0] * 6, whole = std::floor(sector), part = sector - whole, v = hsv[2];
  const float p = v * (1 - hsv[1]), q = v * (1 - hsv[1] * part), t = v * (1 - hsv[1] * (1 - part));
  const std::array<std::array<float, 3>, 6> sectors = {{{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}}};
  const auto& of = sectors[static_cast<std::size_t>(whole) % 6];
  std::copy(of.begin(), of.end(), rgb);
}

// Between `other(pixel)` (factor 0) and the pixel (factor 1).
template <class Other>
void blend(Canvas& c, float factor, Other other) {
  for (std::size_t at = 0; at < c.values.size(); at += c.depth()) {
    float* pixel = &c.values[at];
    const float base = other(pixel);
    for (std::size_t k = 0; k < c.depth(); ++k) pixel[k] = cut(factor * pixel[k] + (1 - factor) * base);
  }
}

}  // namespace

Canvas canvas_of(std::span<const float> sample, InputLayout layout, int height, int width, int channels) {
  Canvas c{height, width, channels, {sample.begin(), sample.end()}};
  if (layout == InputLayout::kNhwc || channels == 1) return c;
  const std::size_t pixels = sample.size() / c.depth();
  for (std::size_t k = 0; k < c.depth(); ++k) {
    for (std::size_t i = 0; i < pixels; ++i) c.values[i * c.depth() + k] = sample[k * pixels + i];
  }
  return c;
}

void write_sample(const Canvas& c, InputLayout layout, std::span<float> out) {
  if (layout == InputLayout::kNhwc || c.channels == 1) {
    std::copy(c.values.begin(), c.values.end(), out.begin());
    return;
  }
  const std::size_t pixels = c.values.size() / c.depth();
  for (std::size_t k = 0; k < c.depth(); ++k) {
    for (std::size_t i = 0; i < pixels; ++i) out[k * pixels + i] = c.values[i * c.depth() + k];
  }
}

Canvas placed(const Canvas& from, int top, int left, int height, int width, float fill) {
  Canvas to{height, width, from.channels, {}};
  to.values.assign(static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * to.depth(), fill);
  const int first = std::max(0, left), last = std::min(width, left + from.width);
  for (int y = std::max(0, top); first < last && y < std::min(height, top + from.height); ++y) {
    const float* row = from.pixel(y - top, first - left);
    std::copy(row, row + static_cast<std::size_t>(last - first) * to.depth(), to.pixel(y, first));
  }
  return to;
}

void flip_horizontal(Canvas& c) {
  for (int y = 0; y < c.height; ++y) {
    for (int left = 0, right = c.width - 1; left < right; ++left, --right)
      std::swap_ranges(c.pixel(y, left), c.pixel(y, left) + c.channels, c.pixel(y, right));
  }
}

void flip_vertical(Canvas& c) {
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(c.width) * c.channels;
  for (int top = 0, bottom = c.height - 1; top < bottom; ++top, --bottom)
    std::swap_ranges(c.pixel(top, 0), c.pixel(top, 0) + row, c.pixel(bottom, 0));
}

void rotate(Canvas& c, double degrees, std::span<const float> fill) {
  const Canvas from = c;
  const double turn = degrees * std::numbers::pi / 180, cosine = std::cos(turn), sine = std::sin(turn);
  const double middle_x = (c.width - 1) / 2.0, middle_y = (c.height - 1) / 2.0;
  const auto at = [&](int y, int x) { return y < 0 || x < 0 || y >= from.height || x >= from.width ? fill.data() : from.pixel(y, x); };
  for (int y = 0; y < c.height; ++y) {
    for (int x = 0; x < c.width; ++x) {
      const double dx = x - middle_x, dy = y - middle_y, sx = middle_x + cosine * dx - sine * dy, sy = middle_y + sine * dx + cosine * dy;
      const double left = std::floor(sx), top = std::floor(sy);
      const auto right_share = static_cast<float>(sx - left), bottom_share = static_cast<float>(sy - top);
      const int x0 = static_cast<int>(left), y0 = static_cast<int>(top);
      const float *a = at(y0, x0), *b = at(y0, x0 + 1), *d = at(y0 + 1, x0), *e = at(y0 + 1, x0 + 1);
      float* out = c.pixel(y, x);
      for (int k = 0; k < c.channels; ++k) {
        const float upper = a[k] + (b[k] - a[k]) * right_share, lower = d[k] + (e[k] - d[k]) * right_share;
        out[k] = upper + (lower - upper) * bottom_share;
      }
    }
  }
}

void erase(Canvas& c, const Window& box, std::span<const float> fill) {
  for (int y = box.y; y < box.y + box.height; ++y) {
    for (int x = box.x; x < box.x + box.width; ++x) std::copy(fill.begin(), fill.begin() + c.channels, c.pixel(y, x));
  }
}

void adjust_brightness(Canvas& c, float factor) {
  for (float& v : c.values) v = cut(v * factor);
}

void adjust_contrast(Canvas& c, float factor) {
  double sum = 0;
  for (std::size_t at = 0; at < c.values.size(); at += c.depth()) sum += static_cast<double>(c.channels == 3 ? gray_of(&c.values[at]) : c.values[at]);
  const auto mean = static_cast<float>(sum / static_cast<double>(c.values.size() / c.depth()));
  blend(c, factor, [mean](const float*) { return mean; });
}

void adjust_saturation(Canvas& c, float factor) {
  if (c.channels == 3) blend(c, factor, gray_of);
}

void adjust_hue(Canvas& c, float turn) {
  if (c.channels != 3) return;
  for (std::size_t at = 0; at < c.values.size(); at += 3) {
    auto hsv = to_hsv(&c.values[at]);
    hsv[0] += turn;
    hsv[0] -= std::floor(hsv[0]);
    from_hsv(hsv, &c.values[at]);
  }
}

}  // namespace tandem::io
