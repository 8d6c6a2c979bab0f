// Data sets in HDF5, read row by row.
#include <fmt/format.h>

#include <mutex>

#include "io/dataset_sources.h"
#include "io/h5_dataset.h"
#include "io/read_file.h"
#include "runtime/base/error.h"

namespace tandem::io {
namespace {

// Of a file with both parts the one to measure on, as root/val of folders.
H5Dataset open_test_part(const std::string& path) {
  try {
    return H5Dataset(path, H5Dataset::Part::kTest);
  } catch (const InvalidData&) {
    return H5Dataset(path);  // training samples alone; or it says what is wrong
  }
}

class H5Samples final : public Dataset {
 public:
  H5Samples(const std::string& path, const DatasetOptions& o)
      : title_(path), file_(open_test_part(path)), options_(o), sample_size_(converted_size(file_.dtype(), file_.sample_shape(), o)) {
    options_.labels = {};  // belong to the caller
    if (file_.has_labels()) labels_ = file_.labels(0, file_.size());
  }
  std::int64_t size() const override { return file_.size(); }
  void load(std::int64_t i, std::span<float> out) const override {
    Tensor row;
    {
      const std::lock_guard lock(mutex_);
      row = file_.samples(i, 1);
    }
    with_context([&] { return quoted(name(i)); }, [&] { convert_sample(row.reshaped(file_.sample_shape()), options_, out); });
  }
  std::int64_t label(std::int64_t i) const override { return labels_.empty() ? -1 : labels_[static_cast<std::size_t>(i)]; }
  std::string name(std::int64_t i) const override { return fmt::format("{}:{}[{}]", title_, file_.samples_name(), i); }
  const std::vector<std::string>& class_names() const override { return none_; }
  std::int64_t sample_size() const override { return sample_size_; }

 private:
  const std::string title_;
  const H5Dataset file_;
  DatasetOptions options_;
  const std::int64_t sample_size_;
  std::vector<std::int64_t> labels_;
  const std::vector<std::string> none_;
  mutable std::mutex mutex_;  // a file belongs to one thread at a time
};

}  // namespace

std::unique_ptr<Dataset> open_h5(const std::string& path, const DatasetOptions& o) {
  return with_context([&] { return quoted(path); }, [&] { return std::make_unique<H5Samples>(path, o); });
}

}  // namespace tandem::io
