#include "io/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "io/dataset_sources.h"
#include "io/h5_dataset.h"
#include "io/idx.h"
#include "io/npy.h"
#include "io/read_file.h"
#include "runtime/base/error.h"

namespace tandem::io {
namespace {

namespace fs = std::filesystem;

bool is_byte_image(DType dtype, std::span<const std::int64_t> shape) {
  return dtype == DType::kU8 && (shape.size() == 2 || (shape.size() == 3 && (shape[2] == 1 || shape[2] == 3)));
}

class Arrays final : public Dataset {
 public:
  Arrays(std::string title, Tensor samples, std::vector<std::int64_t> labels, const DatasetOptions& o)
      : title_(std::move(title)),
        samples_(std::move(samples)),
        labels_(std::move(labels)),
        options_(o),
        shape_(samples_.shape().begin() + 1, samples_.shape().end()) {
    options_.labels = {};
  }
  std::int64_t size() const override { return samples_.shape()[0]; }
  void load(std::int64_t i, std::span<float> out) const override {
    const std::size_t bytes = static_cast<std::size_t>(elements(shape_)) * size_of(samples_.dtype());
    convert_sample(
        Tensor::view(samples_.dtype(), shape_, static_cast<const std::byte*>(samples_.data()) + static_cast<std::size_t>(i) * bytes, nullptr),
        options_, out);
  }
  std::int64_t label(std::int64_t i) const override { return labels_.empty() ? -1 : labels_[static_cast<std::size_t>(i)]; }
  std::string name(std::int64_t i) const override { return fmt::format("{}[{}]", title_, i); }
  const std::vector<std::string>& class_names() const override { return none_; }
  std::int64_t sample_size() const override { return converted_size(samples_.dtype(), shape_, options_); }

 private:
  const std::string title_;
  const Tensor samples_;
  const std::vector<std::int64_t> labels_;
  DatasetOptions options_;
  const Shape shape_;
  const std::vector<std::string> none_;
};

// HDF5 is one library-wide lock; rows are read under ours.
class H5Samples final : public Dataset {
 public:
  H5Samples(const std::string& path, const DatasetOptions& o) : title_(path), file_(path), options_(o) {
    options_.labels = {};
    if (file_.has_labels()) labels_ = file_.labels(0, file_.size());
  }
  std::int64_t size() const override { return file_.size(); }
  void load(std::int64_t i, std::span<float> out) const override {
    Tensor row;
    {
      const std::lock_guard lock(mutex_);
      row = file_.samples(i, 1);
    }
    convert_sample(row.reshaped(file_.sample_shape()), options_, out);
  }
  std::int64_t label(std::int64_t i) const override { return labels_.empty() ? -1 : labels_[static_cast<std::size_t>(i)]; }
  std::string name(std::int64_t i) const override { return fmt::format("{}:{}[{}]", title_, file_.samples_name(), i); }
  const std::vector<std::string>& class_names() const override { return none_; }
  std::int64_t sample_size() const override { return converted_size(file_.dtype(), file_.sample_shape(), options_); }

 private:
  const std::string title_;
  const H5Dataset file_;
  DatasetOptions options_;
  std::vector<std::int64_t> labels_;
  const std::vector<std::string> none_;
  mutable std::mutex mutex_;
};

// "t10k-images-idx3-ubyte.gz" -> "t10k-labels-idx1-ubyte.gz"
std::string label_file(std::string images) {
  const std::size_t at = images.rfind("images-idx3");
  if (at == std::string::npos) return {};
  return images.replace(at, 11, "labels-idx1");
}

std::unique_ptr<Dataset> open_idx(const std::string& path, const DatasetOptions& o) {
  const std::string labels = label_file(path);
  std::vector<std::int64_t> indices;
  if (!labels.empty() && fs::exists(labels)) indices = class_indices(read_idx(labels));
  return open_arrays(path, read_idx(path), std::move(indices), o);
}

// The labels of x.npy are x_y.npy, or y.npy in the same folder.
std::unique_ptr<Dataset> open_npy(const std::string& path, const DatasetOptions& o) {
  const fs::path file(path);
  for (const fs::path& labels : {file.parent_path() / (file.stem().string() + "_y.npy"), file.parent_path() / "y.npy"}) {
    if (fs::exists(labels)) return open_arrays(path, read_npy(path), class_indices(read_npy(labels.string())), o);
  }
  return open_arrays(path, read_npy(path), {}, o);
}

}  // namespace

void convert_sample(const Tensor& sample, const DatasetOptions& o, std::span<float> out) {
  if (is_byte_image(sample.dtype(), sample.shape()) && o.preprocess) {
    const auto values = sample.as<std::uint8_t>();
    Image image{static_cast<int>(sample.shape()[1]), static_cast<int>(sample.shape()[0]), {}};
    if (sample.rank() == 3 && sample.shape()[2] == 3) {
      image.rgb.assign(values.begin(), values.end());
    } else {
      for (const std::uint8_t v : values) image.rgb.insert(image.rgb.end(), 3, v);
    }
    return apply(*o.preprocess, image, out);
  }
  const auto values = sample.to_doubles();
  if (values.size() != out.size()) throw InvalidData(fmt::format("a sample has {} values, the network takes {}", values.size(), out.size()));
  std::transform(values.begin(), values.end(), out.begin(), [](double v) { return static_cast<float>(v); });
}

std::int64_t converted_size(DType dtype, std::span<const std::int64_t> shape, const DatasetOptions& o) {
  return is_byte_image(dtype, shape) && o.preprocess ? o.preprocess->sample_size() : elements(shape);
}

std::vector<std::int64_t> class_indices(const Tensor& labels) {
  const auto values = labels.to_doubles();
  const std::int64_t n = labels.rank() == 0 ? 0 : labels.shape()[0], width = n == 0 ? 1 : labels.size() / n;
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto row = std::span(values).subspan(static_cast<std::size_t>(i * width), static_cast<std::size_t>(width));
    if (width > 1) {
      indices.push_back(std::max_element(row.begin(), row.end()) - row.begin());
    } else {
      if (row[0] != std::floor(row[0]) || row[0] < 0 || row[0] > 1e9) throw InvalidData(fmt::format("label {} is {}: no class index", i, row[0]));
      indices.push_back(static_cast<std::int64_t>(row[0]));
    }
  }
  return indices;
}

std::unique_ptr<Dataset> open_arrays(const std::string& path, Tensor samples, std::vector<std::int64_t> labels, const DatasetOptions& o) {
  if (samples.rank() < 2)
    throw InvalidData(fmt::format("{} must hold samples along its first dimension, has shape {}", quoted(path), to_string(samples.shape())));
  if (!labels.empty() && static_cast<std::int64_t>(labels.size()) != samples.shape()[0]) {
    throw InvalidData(fmt::format("{} holds {} samples and {} labels", quoted(path), samples.shape()[0], labels.size()));
  }
  return std::make_unique<Arrays>(path, std::move(samples), std::move(labels), o);
}

std::unique_ptr<Dataset> open_h5(const std::string& path, const DatasetOptions& o) { return std::make_unique<H5Samples>(path, o); }

std::unique_ptr<Dataset> open_dataset(const std::string& path, const DatasetOptions& o) {
  if (fs::is_directory(path)) return open_class_folders(path, o);
  if (!fs::exists(path)) throw InvalidData(fmt::format("there is no file or folder {}", quoted(path)));
  const auto ends = [&](const char* suffix) { return path.ends_with(suffix); };
  if (ends(".csv") || ends(".txt")) return open_list(path, o);
  if (ends(".npy")) return open_npy(path, o);
  if (ends(".h5") || ends(".hdf5")) return open_h5(path, o);
  if (ends("ubyte") || ends("ubyte.gz") || ends(".idx") || ends(".idx.gz")) return open_idx(path, o);
  throw InvalidData(fmt::format("{} is no data set this program knows: class folders, .csv, .txt, .npy, .h5, idx(.gz)", quoted(path)));
}

}  // namespace tandem::io
