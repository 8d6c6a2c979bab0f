// How the samples of an array become the network's input: images of bytes through the record, numbers as they are. Internal to io.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "io/dataset.h"
#include "runtime/base/tensor.h"

namespace tandem::io {

class StoredSamples {
 public:
  // `shape`: of one sample as it is stored. Throws InvalidData for images without pixels or too large ones, and, where there is a record, for numbers
  // that have the network's shape in neither layout, or in both.
  StoredSamples(DType, Shape shape, const DatasetOptions&);

  const Shape& shape() const { return shape_; }
  std::int64_t size() const { return size_; }  // floats of one sample as the network takes it
  bool are_images() const { return form_ == Form::kRows || form_ == Form::kPlanes; }
  bool are_turned() const { return form_ == Form::kTurned; }  // numbers in the other layout

  Image image(const Tensor& sample) const;
  void convert(const Tensor& sample, std::span<float> out) const;

 private:
  enum class Form { kRows, kPlanes, kAsTheyAre, kTurned };  // bytes: H x W (x C), C x H x W; numbers
  Form number_form() const;
  void turn(std::span<const double> values, std::span<float> out) const;

  const Shape shape_;
  const std::optional<Preprocess> record_;
  Form form_ = Form::kAsTheyAre;
  std::int64_t size_ = 0;
};

}  // namespace tandem::io
