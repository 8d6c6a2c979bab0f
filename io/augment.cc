#include "io/augment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/philox.h"

namespace tandem::io {
namespace {

enum class Kind : std::uint32_t { kResizedCrop, kCrop, kFlip, kVerticalFlip, kRotate, kColour, kErase, kMix };

constexpr int kTries = 10;
constexpr double kLeastRatio = 3.0 / 4, kMostRatio = 4.0 / 3;                  // width / height of resized crops
constexpr double kLeastErased = 0.02, kMostErased = 0.33, kErasedRatio = 0.3;  // area; height / width from this to its inverse
constexpr float kMostAlpha = 4;

PhiloxStream stream(const AugmentKey& key, Kind kind) {
  return {key.seed, static_cast<std::uint32_t>(Purpose::kAugment) + static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(key.pass),
          static_cast<std::uint32_t>(key.index)};
}

double between(PhiloxStream& s, double low, double high) { return low + (high - low) * static_cast<double>(s.uniform()); }

int below(PhiloxStream& s, int n) { return static_cast<int>(s.below(static_cast<std::uint32_t>(n))); }

// Beta(alpha, alpha) as Joehnk draws it.
double beta(PhiloxStream& s, double alpha) {
  const auto open_unit = [&] { return (static_cast<double>(s.next()) + 0.5) * 0x1p-32; };
  while (true) {
    const double x = std::pow(open_unit(), 1 / alpha), y = std::pow(open_unit(), 1 / alpha);
    if (x + y > 0 && x + y <= 1) return x / (x + y);
  }
}

// ---- words

[[noreturn]] void refuse(const std::string& word, const std::string& expected) {
  throw UsageError(fmt::format("--augment '{}': expected {}", word, expected));
}

struct Word {
  std::string whole, name, value;
};

Word word_of(std::string text) {
  const std::size_t equals = text.find('=');
  Word w{text, text.substr(0, equals), equals == std::string::npos ? "" : text.substr(equals + 1)};
  if (equals != std::string::npos && w.value.empty()) refuse(w.whole, "a value behind '='");
  return w;
}

float number(const Word& w, const std::string& text, float low, float high) {
  float v = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), v);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || !(v >= low && v <= high))
    refuse(w.whole, fmt::format("a number from {} to {}", low, high));
  return v;
}

float number(const Word& w, float usual, float low, float high) { return w.value.empty() ? usual : number(w, w.value, low, high); }

std::array<float, 2> range(const Word& w) {
  if (w.value.empty()) return {0.08f, 1};
  const std::size_t colon = w.value.find(':');
  if (colon == std::string::npos) refuse(w.whole, "two parts of the area, LOW:HIGH");
  const std::array<float, 2> r = {number(w, w.value.substr(0, colon), 0.001f, 1), number(w, w.value.substr(colon + 1), 0.001f, 1)};
  if (r[0] > r[1]) refuse(w.whole, "the smaller part first");
  return r;
}

void set(Augmentation& a, const Word& w) {
  if (w.name == "flip") {
    a.flip = number(w, 0.5f, 0, 1);
  } else if (w.name == "vflip") {
    a.vertical_flip = number(w, 0.5f, 0, 1);
  } else if (w.name == "crop") {
    const float pixels = number(w, -1, 0, 4096);
    if (pixels != std::floor(pixels)) refuse(w.whole, "whole pixels");
    a.crop = static_cast<int>(pixels);
  } else if (w.name == "resized-crop") {
    a.resized_crop = range(w);
  } else if (w.name == "rotate") {
    a.rotate = number(w, 10, 0, 180);
  } else if (w.name == "color") {
    a.brightness = a.contrast = a.saturation = number(w, 0.4f, 0, 1);
  } else if (w.name == "brightness") {
    a.brightness = number(w, 0.4f, 0, 1);
  } else if (w.name == "contrast") {
    a.contrast = number(w, 0.4f, 0, 1);
  } else if (w.name == "saturation") {
    a.saturation = number(w, 0.4f, 0, 1);
  } else if (w.name == "hue") {
    a.hue = number(w, 0.1f, 0, 0.5f);
  } else if (w.name == "erase") {
    a.erase = number(w, 0.25f, 0, 1);
  } else if (w.name == "mixup") {
    a.mixup = number(w, 0.2f, 0.01f, kMostAlpha);
  } else if (w.name == "cutmix") {
    a.cutmix = number(w, 1, 0.01f, kMostAlpha);
  } else {
    refuse(w.whole, "flip, vflip, crop, resized-crop, rotate, color, brightness, contrast, saturation, hue, erase, mixup or cutmix");
  }
}

// ---- draws

std::optional<Window> draw_erased(const Augmentation& a, const AugmentKey& key, int height, int width) {
  PhiloxStream s = stream(key, Kind::kErase);
  if (!(s.uniform() < a.erase)) return std::nullopt;
  for (int i = 0; i < kTries; ++i) {
    const double area = between(s, kLeastErased, kMostErased) * height * width;
    const double ratio = std::exp(between(s, std::log(kErasedRatio), -std::log(kErasedRatio)));
    const int h = static_cast<int>(std::nearbyint(std::sqrt(area * ratio))), w = static_cast<int>(std::nearbyint(std::sqrt(area / ratio)));
    if (h < 1 || w < 1 || h >= height || w >= width) continue;
    const int y = below(s, height - h + 1);
    return Window{y, below(s, width - w + 1), h, w};
  }
  return std::nullopt;
}

void change_colours(Canvas& c, const Augmentation& a, const AugmentKey& key) {
  PhiloxStream s = stream(key, Kind::kColour);
  const auto factor = [&](float v) { return s.uniform(1 - v, 1 + v); };
  const float brightness = factor(a.brightness), contrast = factor(a.contrast), saturation = factor(a.saturation), turn = s.uniform(-a.hue, a.hue);
  if (a.brightness != 0) adjust_brightness(c, brightness);
  if (a.contrast != 0) adjust_contrast(c, contrast);
  if (a.saturation != 0) adjust_saturation(c, saturation);
  if (a.hue != 0) adjust_hue(c, turn);
}

}  // namespace

Augmentation parse_augmentation(const std::string& words) {
  Augmentation a;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find(',', at), words.size());
    set(a, word_of(words.substr(at, end - at)));
    at = end + 1;
  }
  return a;
}

Window draw_resized_crop(const Augmentation& a, const AugmentKey& key, int height, int width) {
  PhiloxStream s = stream(key, Kind::kResizedCrop);
  for (int i = 0; i < kTries; ++i) {
    const double area = between(s, static_cast<double>(a.resized_crop[0]), static_cast<double>(a.resized_crop[1])) * height * width;
    const double ratio = std::exp(between(s, std::log(kLeastRatio), std::log(kMostRatio)));
    const double w = std::nearbyint(std::sqrt(area * ratio)), h = std::nearbyint(std::sqrt(area / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const int inner_height = static_cast<int>(h), inner_width = static_cast<int>(w), y = below(s, height - inner_height + 1);
    return {y, below(s, width - inner_width + 1), inner_height, inner_width};
  }
  int h = height, w = width;
  if (width < kLeastRatio * height) h = std::max(1, static_cast<int>(std::nearbyint(width / kLeastRatio)));
  if (width > kMostRatio * height) w = std::max(1, static_cast<int>(std::nearbyint(height * kMostRatio)));
  return {(height - h) / 2, (width - w) / 2, h, w};
}

void augment(Canvas& c, const Augmentation& a, const AugmentKey& key, float border, std::span<const float> mean) {
  if (a.crop != 0) {
    PhiloxStream s = stream(key, Kind::kCrop);
    const int most = a.crop < 0 ? std::min(c.height, c.width) / 8 : a.crop, down = below(s, 2 * most + 1) - most;
    c = placed(c, down, below(s, 2 * most + 1) - most, c.height, c.width, border);
  }
  if (a.flip != 0 && stream(key, Kind::kFlip).uniform() < a.flip) flip_horizontal(c);
  if (a.vertical_flip != 0 && stream(key, Kind::kVerticalFlip).uniform() < a.vertical_flip) flip_vertical(c);
  if (a.rotate != 0) rotate(c, static_cast<double>(stream(key, Kind::kRotate).uniform(-a.rotate, a.rotate)), mean);
  if (a.colours()) change_colours(c, a, key);
  if (a.erase != 0) {
    if (const auto box = draw_erased(a, key, c.height, c.width)) erase(c, *box, mean);
  }
}

Mix draw_mix(const Augmentation& a, const AugmentKey& key, std::int64_t place, std::int64_t count, int height, int width) {
  if (!a.batches() || count < 2) return {place, 1, std::nullopt};
  PhiloxStream s = stream(key, Kind::kMix);
  const bool box = s.uniform() < (a.mixup == 0 ? 1.0f : a.cutmix == 0 ? 0.0f : 0.5f);
  const std::int64_t partner = (place + 1 + s.below(static_cast<std::uint32_t>(count - 1))) % count;
  const double own = beta(s, static_cast<double>(box ? a.cutmix : a.mixup));
  if (!box) return {partner, static_cast<float>(own), std::nullopt};
  // A box of that area around a point of the picture, as far as it lies inside.
  const double side = std::sqrt(1 - own);
  const int h = static_cast<int>(height * side), w = static_cast<int>(width * side), y = below(s, height), x = below(s, width);
  const int top = std::max(0, y - h / 2), left = std::max(0, x - w / 2), bottom = std::min(height, y + h / 2), right = std::min(width, x + w / 2);
  const Window inside{top, left, std::max(0, bottom - top), std::max(0, right - left)};
  const double part = static_cast<double>(inside.height) * inside.width / (static_cast<double>(height) * width);
  return {partner, static_cast<float>(1 - part), inside};
}

}  // namespace tandem::io
