// The kinds of data sets that open_dataset() chooses from. Internal to io.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/dataset.h"
#include "runtime/base/tensor.h"

namespace tandem::io {

std::unique_ptr<Dataset> open_class_folders(const std::string& path, const DatasetOptions&);
std::unique_ptr<Dataset> open_list(const std::string& path, const DatasetOptions&);
std::unique_ptr<Dataset> open_idx(const std::string& path, const DatasetOptions&);
std::unique_ptr<Dataset> open_npy(const std::string& path, const DatasetOptions&);
std::unique_ptr<Dataset> open_npz(const std::string& path, const DatasetOptions&);
std::unique_ptr<Dataset> open_h5(const std::string& path, const DatasetOptions&);

// Samples in memory, the first dimension counts them; labels and weights one for each, empty where there are none. Errors name `path`.
std::unique_ptr<Dataset> open_arrays(const std::string& path, Tensor samples, Tensor labels, Tensor weights, const DatasetOptions&);

// True when there is something of that name; never throws.
bool exists(const std::string& path);

// Whole numbers of 0 or more, or the place of the 1 of each one-hot row. Throws InvalidData naming the row.
std::vector<std::int64_t> class_indices(const Tensor& labels);
// A single 1 among zeros.
bool is_one_hot(std::span<const float> row);

// What is known of the samples of a set: class numbers, or numbers as they are, and weights.
class Answers {
 public:
  Answers() = default;
  // `labels` and `weights` may be empty tensors. Throws InvalidData when they are not one for each of `count` samples, or a number is not finite.
  Answers(const Tensor& labels, const Tensor& weights, std::int64_t count, Targets);
  std::int64_t label(std::int64_t i) const { return classes_.empty() ? -1 : classes_[static_cast<std::size_t>(i)]; }
  double weight(std::int64_t i) const { return weights_.empty() ? 1 : weights_[static_cast<std::size_t>(i)]; }
  std::int64_t value_count() const { return width_; }
  void values(std::int64_t i, std::span<float> out) const;
  bool has_integers() const { return width_ > 0 && integers_; }

 private:
  void take_values(const Tensor& labels, std::int64_t count);
  bool become_classes(std::int64_t rank, Targets) const;

  std::vector<std::int64_t> classes_;
  std::vector<float> values_;
  std::int64_t width_ = 0;  // of values
  bool integers_ = false;   // likewise
  std::vector<double> weights_;
};

}  // namespace tandem::io
