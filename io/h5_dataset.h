// Image sets in HDF5: one data set of samples, one of labels, under the names people use: x/y, x_train/y_train, X_train/Y_train,
// images/labels, data/label, train_set_x/train_set_y (and the same with test). Rows are read as they are asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/hdf5.h"

namespace tandem::io {

class H5Dataset {
 public:
  enum class Part { kAny, kTrain, kTest };  // of a file that holds both; kAny: the plain names first, then train, then test

  // Throws InvalidData when no known pair of names is there, or samples and labels differ in number.
  explicit H5Dataset(const std::string& path, Part part = Part::kAny);

  std::int64_t size() const { return size_; }
  DType dtype() const { return x_.dtype(); }
  const Shape& sample_shape() const { return sample_shape_; }  // without the first dimension, as stored
  const std::string& samples_name() const { return x_.path(); }
  bool has_labels() const { return y_.has_value(); }
  bool has_weights() const { return weight_.has_value(); }
  std::optional<std::int64_t> classes() const;  // where labels are one-hot

  // Samples [first, first + count) with their first dimension.
  Tensor samples(std::int64_t first, std::int64_t count) const { return x_.read_rows(first, count); }
  // The labels as stored, any shape after the first dimension.
  Tensor raw_labels(std::int64_t first, std::int64_t count) const;
  // Class indices: integers (whole numbers in a float type too), or the largest of a one-hot row. InvalidData when a label is neither.
  std::vector<std::int64_t> labels(std::int64_t first, std::int64_t count) const;
  std::vector<double> weights(std::int64_t first, std::int64_t count) const;

 private:
  H5File file_;
  H5Node x_;
  std::optional<H5Node> y_, weight_;
  std::int64_t size_ = 0;
  Shape sample_shape_;
  std::string title_;
};

}  // namespace tandem::io
