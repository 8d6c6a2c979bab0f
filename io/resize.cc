#include "io/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "io/resize_kernels.h"
#include "runtime/base/error.h"

namespace tandem::io {
namespace {

constexpr std::array<std::pair<ResizeKind, std::string_view>, 6> kNames{{{ResizeKind::kPilBicubic, "pil-bicubic"},
                                                                         {ResizeKind::kPilBilinear, "pil-bilinear"},
                                                                         {ResizeKind::kTfBilinear, "tf-bilinear"},
                                                                         {ResizeKind::kCvLinear, "cv-linear"},
                                                                         {ResizeKind::kCvArea, "cv-area"},
                                                                         {ResizeKind::kNearest, "nearest"}}};

void check_size(const PixelView& in, int height, int width) {
  if (height < 1 || width < 1 || in.height < 1 || in.width < 1)
    throw UsageError(fmt::format("cannot resize an image of {}x{} to {}x{}: every side is at least 1", in.width, in.height, width, height));
}

// Source columns (or rows) of target ones [first, first + count). Pillow adds up the step, so rounding at exact halves is its own.
std::vector<int> nearest_sources(int in, int out, int first, int count) {
  std::vector<int> sources;
  const double step = static_cast<double>(in) / out;
  double at = step * 0.5;
  for (int i = 0; i < first + count; ++i, at += step)
    if (i >= first) sources.push_back(std::min(static_cast<int>(at), in - 1));
  return sources;
}

struct Tap {
  int low, high;
  float weight;  // of high
};

std::vector<Tap> tf_taps(int in, int out) {
  std::vector<Tap> taps(static_cast<std::size_t>(out));
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  for (int i = 0; i < out; ++i) {
    const float at = (static_cast<float>(i) + 0.5f) * scale - 0.5f;
    const float floor = std::floor(at);
    taps[static_cast<std::size_t>(i)] = {std::max(static_cast<int>(floor), 0), std::min(static_cast<int>(std::ceil(at)), in - 1), at - floor};
  }
  return taps;
}

}  // namespace

std::string_view name_of(ResizeKind kind) {
  for (const auto& [k, name] : kNames)
    if (k == kind) return name;
  return "unknown";
}

ResizeKind resize_kind(std::string_view name) {
  std::string known;
  for (const auto& [kind, word] : kNames) {
    if (word == name) return kind;
    known += known.empty() ? word : ", " + std::string(word);
  }
  throw UsageError(fmt::format("unknown resize \"{}\", expected one of {}", name, known));
}

Pixels resize_nearest(PixelView in, int height, int width, const Window& window) {
  Pixels out{window.height, window.width, in.channels, {}};
  const auto channels = static_cast<std::size_t>(in.channels);
  const std::size_t in_row = static_cast<std::size_t>(in.width) * channels;
  out.data.resize(static_cast<std::size_t>(window.height) * static_cast<std::size_t>(window.width) * channels);
  const std::vector<int> columns = nearest_sources(in.width, width, window.x, window.width);
  std::uint8_t* to = out.data.data();
  for (const int row : nearest_sources(in.height, height, window.y, window.height)) {
    const std::uint8_t* from = in.data + static_cast<std::size_t>(row) * in_row;
    for (const int column : columns) {
      std::memcpy(to, from + static_cast<std::size_t>(column) * channels, channels);
      to += channels;
    }
  }
  return out;
}

Pixels resize(ResizeKind kind, PixelView in, int height, int width) { return resize(kind, in, height, width, {0, 0, height, width}); }

Pixels resize(ResizeKind kind, PixelView in, int height, int width, const Window& window) {
  check_size(in, height, width);
  if (window.y < 0 || window.x < 0 || window.height < 1 || window.width < 1 || window.height > height - window.y || window.width > width - window.x)
    throw UsageError(fmt::format("the window of {}x{} at ({}, {}) does not lie inside an image of {}x{}", window.width, window.height, window.x,
                                 window.y, width, height));
  switch (kind) {
    case ResizeKind::kPilBicubic:
    case ResizeKind::kPilBilinear:
      return resize_pil(kind == ResizeKind::kPilBicubic, in, height, width, window);
    case ResizeKind::kCvLinear:
    case ResizeKind::kCvArea:
      return resize_cv(kind == ResizeKind::kCvArea, in, height, width, window);
    case ResizeKind::kNearest:
      return resize_nearest(in, height, width, window);
    case ResizeKind::kTfBilinear:
      break;
  }
  throw UsageError("tf-bilinear has a float result: resize_tf_bilinear");
}

void resize_tf_bilinear(PixelView in, int height, int width, std::span<float> out) {
  check_size(in, height, width);
  const auto channels = static_cast<std::size_t>(in.channels);
  const std::size_t in_row = static_cast<std::size_t>(in.width) * channels;
  const std::vector<Tap> columns = tf_taps(in.width, width);
  float* to = out.data();
  for (const Tap& row : tf_taps(in.height, height)) {
    const std::uint8_t* top = in.data + static_cast<std::size_t>(row.low) * in_row;
    const std::uint8_t* bottom = in.data + static_cast<std::size_t>(row.high) * in_row;
    for (const Tap& column : columns) {
      const std::size_t left = static_cast<std::size_t>(column.low) * channels, right = static_cast<std::size_t>(column.high) * channels;
      for (std::size_t c = 0; c < channels; ++c) {
        const float tl = top[left + c], tr = top[right + c], bl = bottom[left + c], br = bottom[right + c];
        const float upper = tl + (tr - tl) * column.weight;
        const float lower = bl + (br - bl) * column.weight;
        *to++ = upper + (lower - upper) * row.weight;
      }
    }
  }
}

}  // namespace tandem::io
