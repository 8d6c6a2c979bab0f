// Data sets in HDF5, read row by row.
#include <fmt/format.h>

#include <mutex>

#include "io/dataset_sources.h"
#include "io/h5_dataset.h"
#include "io/stored_samples.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {
namespace {

// Of a file with both parts the one to measure on, as root/val of folders.
H5Dataset open_part(const std::string& path, Part part) {
  if (part == Part::kTraining) return H5Dataset(path, H5Dataset::Part::kTrain);
  try {
    return H5Dataset(path, H5Dataset::Part::kTest);
  } catch (const InvalidData&) {
    return H5Dataset(path);  // training samples alone; or it says what is wrong
  }
}

class H5Samples final : public Dataset {
 public:
  H5Samples(const std::string& path, const DatasetOptions& o)
      : title_(path), file_(open_part(path, o.part)), form_(file_.dtype(), file_.sample_shape(), o) {
    const std::int64_t n = file_.size();
    Tensor weights;
    if (file_.has_weights()) weights = Tensor::of<double>({n}, file_.weights(0, n));
    answers_ = Answers(file_.has_labels() ? file_.raw_labels(0, n) : Tensor(), weights, n, o.targets);
  }
  std::int64_t size() const override { return file_.size(); }
  void load(std::int64_t i, std::span<float> out) const override {
    const Tensor sample = stored(i);
    with_context([&] { return quote_whole(name(i)); }, [&] { form_.convert(sample, out); });
  }
  bool has_images() const override { return form_.are_images(); }
  bool is_turned() const override { return form_.are_turned(); }
  Image image(std::int64_t i) const override { return form_.image(stored(i)); }
  std::int64_t label(std::int64_t i) const override { return answers_.label(i); }
  double weight(std::int64_t i) const override { return answers_.weight(i); }
  std::int64_t value_count() const override { return answers_.value_count(); }
  void values(std::int64_t i, std::span<float> out) const override { answers_.values(i, out); }
  bool has_integer_values() const override { return answers_.has_integers(); }
  std::string name(std::int64_t i) const override { return fmt::format("{}:{}[{}]", title_, file_.samples_name(), i); }
  const std::vector<std::string>& class_names() const override { return none_; }
  std::int64_t sample_size() const override { return form_.size(); }

 private:
  Tensor stored(std::int64_t i) const {
    const std::lock_guard lock(mutex_);
    return file_.samples(i, 1).reshaped(file_.sample_shape());
  }
  const std::string title_;
  const H5Dataset file_;
  const StoredSamples form_;
  Answers answers_;
  const std::vector<std::string> none_;
  mutable std::mutex mutex_;  // a file belongs to one thread at a time
};

}  // namespace

std::unique_ptr<Dataset> open_h5(const std::string& path, const DatasetOptions& o) {
  return with_context([&] { return quote_whole(path); }, [&] { return std::make_unique<H5Samples>(path, o); });
}

}  // namespace tandem::io
