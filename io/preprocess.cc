#include "io/preprocess.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/base/error.h"

namespace tandem::io {
namespace {

constexpr int kMaxSide = 16384;

Pixels source_pixels(const Preprocess& p, const Image& image) {
  if (p.channels != Channels::kGray) return {image.height, image.width, 3, image.rgb};
  Pixels gray{image.height, image.width, 1,
              std::vector<std::uint8_t>(static_cast<std::size_t>(image.height) * static_cast<std::size_t>(image.width))};
  for (std::size_t i = 0; i < gray.data.size(); ++i) {  // Pillow's convert("L")
    const std::uint8_t* v = &image.rgb[3 * i];
    gray.data[i] = static_cast<std::uint8_t>((v[0] * 19595u + v[1] * 38470u + v[2] * 7471u + 0x8000u) >> 16);
  }
  return gray;
}

Pixels window_of(const Pixels& from, const Window& part) {
  Pixels to{part.height, part.width, from.channels, {}};
  const std::size_t row = static_cast<std::size_t>(part.width) * static_cast<std::size_t>(from.channels);
  to.data.reserve(row * static_cast<std::size_t>(part.height));
  for (int y = part.y; y < part.y + part.height; ++y) {
    const std::size_t pixel = static_cast<std::size_t>(y) * static_cast<std::size_t>(from.width) + static_cast<std::size_t>(part.x);
    const std::uint8_t* first = &from.data[pixel * static_cast<std::size_t>(from.channels)];
    to.data.insert(to.data.end(), first, first + row);
  }
  return to;
}

Canvas resized(const Preprocess& p, const Pixels& from, int height, int width) {
  Canvas c{height, width, from.channels,
           std::vector<float>(static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * static_cast<std::size_t>(from.channels))};
  if (p.resize == ResizeKind::kTfBilinear) {
    resize_tf_bilinear(from.view(), height, width, c.values);
  } else if (from.height == height && from.width == width) {
    std::copy(from.data.begin(), from.data.end(), c.values.begin());
  } else {
    const Pixels pixels = resize(p.resize, from.view(), height, width);
    std::copy(pixels.data.begin(), pixels.data.end(), c.values.begin());
  }
  return c;
}

// The middle of the image resized so that it covers height x width / crop_pct: torchvision's Resize(short side) and CenterCrop where the
// target is square, timm's ResizeKeepRatio where it is not. Only the middle is computed: a long thin image would fill the memory.
Canvas cropped(const Preprocess& p, const Pixels& from, int height, int width) {
  const double target_height = std::floor(height / p.crop_pct), target_width = std::floor(width / p.crop_pct);
  double h = 0, w = 0;
  if (target_height == target_width) {
    const int side = std::min(from.height, from.width);
    h = std::floor(target_height * from.height / side);
    w = std::floor(target_width * from.width / side);
  } else {
    const double ratio = std::min(from.height / target_height, from.width / target_width);
    h = std::max(std::nearbyint(from.height / ratio), static_cast<double>(height));
    w = std::max(std::nearbyint(from.width / ratio), static_cast<double>(width));
  }
  constexpr double kMaxLength = 1 << 28, kMaxFloatPixels = 100e6;
  if (std::max(h, w) > kMaxLength || (p.resize == ResizeKind::kTfBilinear && h * w > kMaxFloatPixels))
    throw InvalidData(fmt::format("the image is too elongated ({} x {}) to be cropped to {} x {}", from.height, from.width, height, width));
  const int top = static_cast<int>(std::nearbyint((h - height) / 2)), left = static_cast<int>(std::nearbyint((w - width) / 2));
  if (p.resize == ResizeKind::kTfBilinear) return placed(resized(p, from, static_cast<int>(h), static_cast<int>(w)), -top, -left, height, width, 0);
  const Pixels pixels = resize(p.resize, from.view(), static_cast<int>(h), static_cast<int>(w), {top, left, height, width});
  return {height, width, from.channels, {pixels.data.begin(), pixels.data.end()}};
}

Canvas fitted(const Preprocess& p, const Pixels& from, int height, int width) {
  const auto fill = static_cast<float>(p.pad_value);
  if (p.fit == Fit::kSquash) return resized(p, from, height, width);
  if (p.fit == Fit::kCrop) return cropped(p, from, height, width);
  const double scale = std::min(static_cast<double>(height) / from.height, static_cast<double>(width) / from.width);
  const int h = std::clamp(static_cast<int>(std::lround(from.height * scale)), 1, height),
            w = std::clamp(static_cast<int>(std::lround(from.width * scale)), 1, width);
  return placed(resized(p, from, h, w), (height - h) / 2, (width - w) / 2, height, width, fill);
}

}  // namespace

void check(const Preprocess& p) {
  const auto refuse = [](const std::string& text) { throw UsageError("preprocessing: " + text); };
  if (p.height < 1 || p.width < 1 || p.height > kMaxSide || p.width > kMaxSide)
    refuse(fmt::format("size must lie in 1 to {}, is {} x {}", kMaxSide, p.height, p.width));
  if (!(p.crop_pct > 0.01 && p.crop_pct <= 1)) refuse(fmt::format("crop_pct must lie in (0.01, 1], is {}", p.crop_pct));
  for (const int v : p.pad) {
    if (v < 0 || v > kMaxSide) refuse(fmt::format("pad must be four numbers of 0 or more, one is {}", v));
  }
  if (p.pad[0] + p.pad[2] >= p.height || p.pad[1] + p.pad[3] >= p.width)
    refuse(fmt::format("pad leaves nothing of the size {} x {}", p.height, p.width));
  if (!(p.pad_value >= 0 && p.pad_value <= 255)) refuse(fmt::format("pad_value must lie in 0 to 255, is {}", p.pad_value));
  const auto channels = static_cast<std::size_t>(p.channel_count());
  if (p.mean.size() != channels || p.std.size() != channels)
    refuse(fmt::format("mean and std must have {} values, have {} and {}", channels, p.mean.size(), p.std.size()));
  for (std::size_t i = 0; i < channels; ++i) {
    if (!std::isfinite(p.mean[i]) || !std::isfinite(p.std[i]) || p.std[i] == 0) refuse("mean and std must be finite, std not 0");
  }
}

void set_family(Preprocess& p, const std::string& family) {
  if (family == "tf") {
    p.mean = {127.5f, 127.5f, 127.5f};
    p.std = {127.5f, 127.5f, 127.5f};
  } else if (family == "torch") {
    p.mean = {0.485f * 255, 0.456f * 255, 0.406f * 255};
    p.std = {0.229f * 255, 0.224f * 255, 0.225f * 255};
  } else if (family == "caffe") {
    p.mean = {103.939f, 116.779f, 123.68f};
    p.std = {1, 1, 1};
  } else if (family == "none") {
    p.mean = {0, 0, 0};
    p.std = {1, 1, 1};
  } else {
    throw UsageError(fmt::format("--preprocess must be tf, torch, caffe or none, is '{}'", family));
  }
  p.channels = family == "caffe" ? Channels::kBgr : Channels::kRgb;
}

Canvas to_canvas(const Preprocess& p, const Image& image, const std::optional<Window>& part) {
  const int inner_height = p.height - p.pad[0] - p.pad[2], inner_width = p.width - p.pad[1] - p.pad[3];
  const Pixels from = source_pixels(p, image);
  Canvas canvas = part ? resized(p, window_of(from, *part), inner_height, inner_width) : fitted(p, from, inner_height, inner_width);
  if (canvas.height != p.height || canvas.width != p.width)
    canvas = placed(canvas, p.pad[0], p.pad[1], p.height, p.width, static_cast<float>(p.pad_value));
  return canvas;
}

void normalise(const Preprocess& p, const Canvas& canvas, std::span<float> out) {
  const std::size_t channels = static_cast<std::size_t>(p.channel_count()),
                    pixels = static_cast<std::size_t>(p.height) * static_cast<std::size_t>(p.width);
  for (std::size_t c = 0; c < channels; ++c) {
    const std::size_t from = p.channels == Channels::kBgr ? channels - 1 - c : c;
    const std::size_t step = p.layout == InputLayout::kNhwc ? channels : 1, at = p.layout == InputLayout::kNhwc ? c : c * pixels;
    const float mean = p.mean[c], deviation = p.std[c];
    for (std::size_t i = 0; i < pixels; ++i) out[at + i * step] = (canvas.values[i * channels + from] - mean) / deviation;
  }
}

void apply(const Preprocess& p, const Image& image, std::span<float> out) { normalise(p, to_canvas(p, image), out); }

}  // namespace tandem::io
