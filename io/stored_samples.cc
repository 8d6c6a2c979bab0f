#include "io/stored_samples.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace tandem::io {
namespace {

bool is_colours(std::int64_t n) { return n == 1 || n == 3; }

}  // namespace

StoredSamples::StoredSamples(DType dtype, Shape shape, const DatasetOptions& o) : shape_(std::move(shape)), record_(o.preprocess) {
  const bool three = shape_.size() == 3;
  if (record_ && dtype == DType::kU8 && (shape_.size() == 2 || (three && is_colours(shape_[2]))))
    form_ = Form::kRows;
  else if (record_ && dtype == DType::kU8 && three && is_colours(shape_[0]))
    form_ = Form::kPlanes;
  else
    form_ = number_form();
  size_ = are_images() ? record_->sample_size() : elements(shape_);
  if (!are_images()) return;
  const DecodeLimits limits;
  const std::size_t first = form_ == Form::kPlanes ? 1 : 0;
  const std::int64_t height = shape_[first], width = shape_[first + 1];
  if (height < 1 || width < 1 || height > limits.max_pixels / width)
    throw InvalidData(fmt::format("images must have 1 to {} pixels, are {} x {}", limits.max_pixels, height, width));
}

// As many numbers are not enough: those of another layout would be other pixels.
StoredSamples::Form StoredSamples::number_form() const {
  if (!record_) return Form::kAsTheyAre;
  const std::int64_t h = record_->height, w = record_->width, c = record_->channel_count();
  const Shape planes = {c, h, w}, rows = {h, w, c};
  const bool last = record_->layout == InputLayout::kNhwc;
  const Shape &own = last ? rows : planes, &other = last ? planes : rows;
  if (c == 1 && (shape_ == own || shape_ == other || shape_ == Shape{h, w})) return Form::kAsTheyAre;
  if (own == other && shape_ == own)
    throw InvalidData(fmt::format("samples of shape {} may be channels first or last, and the network takes {}: nothing tells which they are",
                                  to_string(shape_), to_string(own)));
  if (shape_ == own) return Form::kAsTheyAre;
  if (shape_ == other) return Form::kTurned;
  throw InvalidData(fmt::format("samples have shape {}, the network takes {} (or, turned, {})", to_string(shape_), to_string(own), to_string(other)));
}

Image StoredSamples::image(const Tensor& sample) const {
  const auto values = sample.as<std::uint8_t>();
  const bool planes = form_ == Form::kPlanes;
  const std::size_t first = planes ? 1 : 0;
  Image image{static_cast<int>(shape_[first + 1]), static_cast<int>(shape_[first]), {}};
  const auto pixels = static_cast<std::size_t>(shape_[first] * shape_[first + 1]);
  const std::size_t colours = values.size() / pixels, step = planes ? 1 : colours, apart = planes ? pixels : 1;
  image.rgb.resize(3 * pixels);
  for (std::size_t i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < 3; ++c) image.rgb[3 * i + c] = values[i * step + (colours == 3 ? c * apart : 0)];
  }
  return image;
}

void StoredSamples::turn(std::span<const double> values, std::span<float> out) const {
  const bool to_last = record_->layout == InputLayout::kNhwc;  // from channels first
  const auto pixels = static_cast<std::size_t>(record_->height) * static_cast<std::size_t>(record_->width);
  const auto channels = static_cast<std::size_t>(record_->channel_count());
  for (std::size_t i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < channels; ++c) {
      const std::size_t last = i * channels + c, first = c * pixels + i;
      out[to_last ? last : first] = static_cast<float>(values[to_last ? first : last]);
    }
  }
}

void StoredSamples::convert(const Tensor& sample, std::span<float> out) const {
  if (are_images()) return apply(*record_, image(sample), out);
  const auto values = sample.to_doubles();
  if (values.size() != out.size()) throw InvalidData(fmt::format("a sample has {} values, the network takes {}", values.size(), out.size()));
  if (are_turned()) return turn(values, out);
  std::transform(values.begin(), values.end(), out.begin(), [](double v) { return static_cast<float>(v); });
}

}  // namespace tandem::io
