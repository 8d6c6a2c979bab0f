#include "io/batch_content.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {
namespace {

constexpr int kMostSide = 1 << 20;

}  // namespace

BatchContent::BatchContent(const Dataset& data, const BatchOptions& o, std::span<const std::int64_t> members) : data_(data), o_(o) {
  if (elements(o.sample_shape) != data.sample_size())
    throw InvalidData(fmt::format("a sample has {} values, the network takes {}", data.sample_size(), to_string(o.sample_shape)));
  layout_ = o.preprocess ? o.preprocess->layout : o.layout;
  if (const Shape& s = o.sample_shape; s.size() == 3 && *std::max_element(s.begin(), s.end()) <= kMostSide) {
    const bool last = layout_ == InputLayout::kNhwc;
    channels_ = static_cast<int>(s[last ? 2 : 0]);
    height_ = static_cast<int>(s[last ? 0 : 1]);
    columns_ = static_cast<int>(s[last ? 1 : 2]);
  }
  mean_.assign(static_cast<std::size_t>(std::max(channels_, 1)), 0.0f);
  if (data.has_images() && o.preprocess) {
    mean_ = o.preprocess->mean;
    if (o.preprocess->channels == Channels::kBgr) std::reverse(mean_.begin(), mean_.end());  // canvases are RGB
    border_ = static_cast<float>(o.preprocess->pad_value);
  }
  check_augmentation();
  check_targets(members);
}

void BatchContent::check_augmentation() const {
  const Augmentation& a = o_.augment;
  if ((a.samples() || a.cutmix != 0) && height_ == 0)
    throw UsageError(fmt::format("samples of shape {} cannot be augmented as images: only mixup changes them", to_string(o_.sample_shape)));
  if ((a.colours() || a.resized_crop[1] != 0) && !data_.has_images())
    throw UsageError("colour changes and resized-crop need images of bytes and a preprocessing record; the data holds numbers");
}

void BatchContent::check_targets(std::span<const std::int64_t> members) {
  if (!(o_.label_smoothing >= 0 && o_.label_smoothing < 1))
    throw UsageError(fmt::format("label smoothing must lie in [0, 1), is {}", o_.label_smoothing));
  if (data_.value_count() > 0) {
    width_ = static_cast<std::size_t>(data_.value_count());
    if (o_.outputs != data_.value_count())
      throw InvalidData(fmt::format("targets have {} values, the network gives {}", data_.value_count(), o_.outputs));
    if (!o_.class_weights.empty() && !o_.shares) throw UsageError("class weights need class numbers as targets");
    return check_class_weights(o_.outputs);
  }
  if (o_.outputs < 1) throw UsageError(fmt::format("the network must give at least one output, gives {}", o_.outputs));
  width_ = static_cast<std::size_t>(o_.outputs);
  classes_ = o_.outputs == 1 ? 2 : o_.outputs;
  check_class_weights(classes_);
  for (const std::int64_t i : members) {
    if (data_.label(i) < 0) throw InvalidData(fmt::format("{} has no label", quote_whole(data_.name(i))));
    const std::int64_t place = label(i);
    if (place < 0 || place >= classes_)
      throw InvalidData(fmt::format("{} has label {}, the network tells {} classes apart", quote_whole(data_.name(i)), data_.label(i), classes_));
  }
}

void BatchContent::check_class_weights(std::int64_t classes) const {
  if (!o_.class_weights.empty() && std::ssize(o_.class_weights) != classes)
    throw UsageError(fmt::format("there are {} class weights for {} classes", o_.class_weights.size(), classes));
  for (const float w : o_.class_weights) {
    if (!(w >= 0) || std::isinf(w)) throw UsageError(fmt::format("a class weight is {}, expected a number of 0 or more", w));
  }
}

std::int64_t BatchContent::label(std::int64_t index) const {
  if (o_.shares && data_.value_count() > 0) return class_of_shares(data_, index);
  const std::int64_t of_data = data_.label(index);
  if (classes_ == 0 || o_.class_map.empty()) return classes_ == 0 ? -1 : of_data;
  return of_data < std::ssize(o_.class_map) ? o_.class_map[static_cast<std::size_t>(of_data)] : -1;
}

void BatchContent::write_target(std::int64_t index, std::span<float> out) const {
  const float s = o_.label_smoothing;
  if (classes_ == 0) {
    data_.values(index, out);
  } else if (width_ == 1) {
    out[0] = static_cast<float>(label(index));
  } else {
    std::fill(out.begin(), out.end(), 0.0f);
    out[static_cast<std::size_t>(label(index))] = 1;
  }
  if (s == 0) return;
  const float base = (classes_ == 0 && !o_.shares) || width_ == 1 || o_.apart ? s / 2 : s / static_cast<float>(width_);
  for (float& t : out) t = t * (1 - s) + base;
}

float BatchContent::weight(std::int64_t index) const {
  const double of_class = o_.class_weights.empty() ? 1.0 : static_cast<double>(o_.class_weights[static_cast<std::size_t>(label(index))]);
  return static_cast<float>(data_.weight(index) * of_class);
}

void BatchContent::load(std::int64_t index, std::int64_t pass, std::span<float> out) const {
  const Augmentation& a = o_.augment;
  if (!a.samples()) return data_.load(index, out);
  const AugmentKey key{o_.seed, pass, index};
  if (!data_.has_images()) {
    data_.load(index, out);
    Canvas canvas = canvas_of(out, layout_, height_, columns_, channels_);
    augment(canvas, a, key, border_, mean_);
    return write_sample(canvas, layout_, out);
  }
  const Image image = data_.image(index);
  with_context([&] { return quote_whole(data_.name(index)); },
               [&] {
                 std::optional<Window> part;
                 if (a.resized_crop[1] != 0) part = draw_resized_crop(a, key, image.height, image.width);
                 Canvas canvas = to_canvas(*o_.preprocess, image, part);
                 augment(canvas, a, key, border_, mean_);
                 normalise(*o_.preprocess, canvas, out);
               });
}

void BatchContent::mix_sample(std::span<const Sample> samples, std::size_t place, const Mix& mix, std::span<float> out) const {
  const std::vector<float>&own = samples[place].values, &other = samples[static_cast<std::size_t>(mix.partner)].values;
  if (!mix.box) {
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = mix.own * own[k] + (1 - mix.own) * other[k];
    return;
  }
  std::copy(own.begin(), own.end(), out.begin());
  const bool last = layout_ == InputLayout::kNhwc;
  const int planes = last ? 1 : channels_, depth = last ? channels_ : 1;  // rows of `depth` numbers a pixel, in each plane
  for (int plane = 0; plane < planes; ++plane) {
    for (int y = mix.box->y; y < mix.box->y + mix.box->height; ++y) {
      const std::ptrdiff_t at = ((static_cast<std::ptrdiff_t>(plane) * height_ + y) * columns_ + mix.box->x) * depth;
      std::copy_n(other.begin() + at, static_cast<std::ptrdiff_t>(mix.box->width) * depth, out.begin() + at);
    }
  }
}

Batch BatchContent::assembled(std::vector<Sample> samples, std::int64_t pass) const {
  const std::int64_t n = std::ssize(samples);
  Shape shape = o_.sample_shape;
  shape.insert(shape.begin(), n);
  Batch b{Tensor(DType::kF32, shape), Tensor(DType::kF32, {n, static_cast<std::int64_t>(width_)}), Tensor(DType::kF32, {n}), {}, {}, 0, {}, false};
  const std::size_t sample = static_cast<std::size_t>(data_.sample_size());
  const std::span<float> x = b.x.as_mutable<float>(), target = b.target.as_mutable<float>(), weights = b.weight.as_mutable<float>();
  std::vector<float> targets(target.size()), own(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::int64_t index = samples[i].index;
    b.index.push_back(index);
    b.label.push_back(label(index));
    write_target(index, std::span(targets).subspan(i * width_, width_));
    own[i] = weight(index);
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Mix mix = draw_mix(o_.augment, {o_.seed, pass, samples[i].index}, static_cast<std::int64_t>(i), n, height_, columns_);
    const std::size_t j = static_cast<std::size_t>(mix.partner);
    if (j == i) {
      std::copy(samples[i].values.begin(), samples[i].values.end(), x.begin() + static_cast<std::ptrdiff_t>(i * sample));
    } else {
      mix_sample(samples, i, mix, x.subspan(i * sample, sample));
    }
    for (std::size_t k = 0; k < width_; ++k) target[i * width_ + k] = mix.own * targets[i * width_ + k] + (1 - mix.own) * targets[j * width_ + k];
    weights[i] = mix.own * own[i] + (1 - mix.own) * own[j];
  }
  return b;
}

}  // namespace tandem::io
