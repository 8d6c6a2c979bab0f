// Data sets of arrays in memory, and what their targets are.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "io/dataset_sources.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/stored_samples.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostSamples = 1 << 25;  // of a set in memory

class Arrays final : public Dataset {
 public:
  Arrays(std::string title, Tensor samples, Answers answers, const DatasetOptions& o)
      : title_(std::move(title)),
        samples_(std::move(samples)),
        answers_(std::move(answers)),
        form_(samples_.dtype(), Shape(samples_.shape().begin() + 1, samples_.shape().end()), o) {}
  std::int64_t size() const override { return samples_.shape()[0]; }
  void load(std::int64_t i, std::span<float> out) const override {
    with_context([&] { return quote_whole(name(i)); }, [&] { form_.convert(stored(i), out); });
  }
  bool has_images() const override { return form_.are_images(); }
  bool is_turned() const override { return form_.are_turned(); }
  Image image(std::int64_t i) const override { return form_.image(stored(i)); }
  std::int64_t label(std::int64_t i) const override { return answers_.label(i); }
  double weight(std::int64_t i) const override { return answers_.weight(i); }
  std::int64_t value_count() const override { return answers_.value_count(); }
  void values(std::int64_t i, std::span<float> out) const override { answers_.values(i, out); }
  bool has_integer_values() const override { return answers_.has_integers(); }
  std::string name(std::int64_t i) const override { return fmt::format("{}[{}]", title_, i); }
  const std::vector<std::string>& class_names() const override { return none_; }
  std::int64_t sample_size() const override { return form_.size(); }

 private:
  Tensor stored(std::int64_t i) const {
    const std::size_t bytes = static_cast<std::size_t>(elements(form_.shape())) * size_of(samples_.dtype());
    return Tensor::view(samples_.dtype(), form_.shape(), static_cast<const std::byte*>(samples_.data()) + static_cast<std::size_t>(i) * bytes,
                        nullptr);
  }
  const std::string title_;
  const Tensor samples_;
  const Answers answers_;
  const StoredSamples form_;
  const std::vector<std::string> none_;
};

// The largest of another row is no class: it may be a share, or one of several.
std::int64_t place_of_one(std::span<const double> row, std::int64_t index) {
  const bool clear = std::count(row.begin(), row.end(), 1.0) == 1 && std::count(row.begin(), row.end(), 0.0) == std::ssize(row) - 1;
  if (!clear) throw InvalidData(fmt::format("label {} is no one-hot row: expected a single 1 among zeros", index));
  return std::find(row.begin(), row.end(), 1.0) - row.begin();
}

// Every target is a class: a whole number, or a one-hot row.
bool are_classes(std::span<const float> values, std::int64_t width, std::int64_t rank) {
  if (width == 1) return std::all_of(values.begin(), values.end(), [](float v) { return v >= 0 && v <= 1e9f && v == std::floor(v); });
  bool all = rank <= 2;
  for (std::size_t at = 0; all && at < values.size(); at += static_cast<std::size_t>(width))
    all = is_one_hot(values.subspan(at, static_cast<std::size_t>(width)));
  return all;
}

struct Pair {
  std::optional<Part> part;
  const char *x, *y;
};
// What is measured comes first, as root/val does for folders; what is trained on is never the test part.
constexpr Pair kPairs[] = {{Part::kMeasuring, "x_test", "y_test"},
                           {Part::kMeasuring, "X_test", "y_test"},
                           {Part::kMeasuring, "X_test", "Y_test"},
                           {Part::kMeasuring, "test_set_x", "test_set_y"},
                           {std::nullopt, "x", "y"},
                           {std::nullopt, "X", "Y"},
                           {std::nullopt, "images", "labels"},
                           {std::nullopt, "image", "label"},
                           {std::nullopt, "data", "label"},
                           {Part::kTraining, "x_train", "y_train"},
                           {Part::kTraining, "X_train", "y_train"},
                           {Part::kTraining, "X_train", "Y_train"},
                           {Part::kTraining, "train_set_x", "train_set_y"}};

std::vector<Pair> pairs_for(Part part) {
  std::vector<Pair> pairs(std::begin(kPairs), std::end(kPairs));
  if (part == Part::kMeasuring) return pairs;
  std::erase_if(pairs, [](const Pair& p) { return p.part == Part::kMeasuring; });
  std::stable_partition(pairs.begin(), pairs.end(), [](const Pair& p) { return p.part == Part::kTraining; });
  return pairs;
}

}  // namespace

bool are_shares(std::span<const float> row) {
  constexpr double kTolerance = 1e-3;
  double sum = 0;
  for (const float v : row) sum += static_cast<double>(v);
  return std::abs(sum - 1) <= kTolerance && std::all_of(row.begin(), row.end(), [](float v) { return v >= 0; });
}

bool is_one_hot(std::span<const float> row) {
  const auto ones = std::count(row.begin(), row.end(), 1.0f);
  return ones == 1 && std::count(row.begin(), row.end(), 0.0f) == std::ssize(row) - 1;
}

std::vector<std::int64_t> class_indices(const Tensor& labels) {
  if (labels.rank() < 1) throw InvalidData("labels must lie along a first dimension, are one number");
  const std::int64_t n = labels.shape()[0], width = n == 0 ? 1 : labels.size() / n;
  if (width < 1 || (width > 1 && labels.rank() > 2))
    throw InvalidData(fmt::format("labels must be class numbers or one-hot rows, have shape {}", to_string(labels.shape())));
  std::vector<std::int64_t> indices;
  constexpr std::int64_t kAtOnce = 1024;  // rows as double, which may be eight times what is stored
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) {
    if (i % kAtOnce == 0) {
      const auto* at = static_cast<const std::byte*>(labels.data()) + static_cast<std::size_t>(i * width) * size_of(labels.dtype());
      values = Tensor::view(labels.dtype(), {std::min(kAtOnce, n - i), width}, at, nullptr).to_doubles();
    }
    const auto row = std::span(values).subspan(static_cast<std::size_t>(i % kAtOnce * width), static_cast<std::size_t>(width));
    if (width > 1) {
      indices.push_back(place_of_one(row, i));
      continue;
    }
    if (row[0] != std::floor(row[0]) || row[0] < 0 || row[0] > 1e9) throw InvalidData(fmt::format("label {} is {}: no class number", i, row[0]));
    indices.push_back(static_cast<std::int64_t>(row[0]));
  }
  return indices;
}

Answers::Answers(const Tensor& labels, const Tensor& weights, std::int64_t count, Targets targets) {
  for (const auto& [tensor, what] : {std::pair(&labels, "labels"), std::pair(&weights, "sample weights")}) {
    if (!*tensor) continue;
    if (tensor->rank() < 1) throw InvalidData(fmt::format("{} must lie along a first dimension, are one number", what));
    if (tensor->shape()[0] != count) throw InvalidData(fmt::format("there are {} samples and {} {}", count, tensor->shape()[0], what));
  }
  if (labels && targets == Targets::kNumbers && labels.size() != count)
    throw InvalidData(fmt::format("labels have shape {}, expected one class number for each sample (categorical_crossentropy takes rows)",
                                  to_string(labels.shape())));
  const bool numbers = targets == Targets::kValues || targets == Targets::kEither || (targets == Targets::kShares && labels.size() != count);
  if (labels && numbers && count > 0) take_values(labels, count);
  if (width_ > 0 && become_classes(labels.rank(), targets)) {
    values_ = {};
    width_ = 0;
  }
  if (labels && width_ == 0) classes_ = class_indices(labels);
  if (!weights) return;
  if (weights.size() != count)
    throw InvalidData(fmt::format("sample weights must be one number for each sample, have shape {}", to_string(weights.shape())));
  weights_ = weights.to_doubles();
  for (const double w : weights_) {
    if (!(w >= 0) || std::isinf(w)) throw InvalidData(fmt::format("a sample weight is {}, expected a number of 0 or more", w));
  }
}

// Throws where rows are neither classes nor shares of them.
bool Answers::become_classes(std::int64_t rank, Targets targets) const {
  if (targets == Targets::kValues) return false;
  if (are_classes(values_, width_, rank)) return true;
  for (std::int64_t i = 0; targets == Targets::kShares && i < std::ssize(values_) / width_; ++i) {
    if (rank > 2 || !are_shares(std::span(values_).subspan(static_cast<std::size_t>(i * width_), static_cast<std::size_t>(width_))))
      throw InvalidData(fmt::format("label {} is no class and no shares of classes: expected {} numbers of 0 or more that add up to 1", i, width_));
  }
  return false;
}

void Answers::take_values(const Tensor& labels, std::int64_t count) {
  width_ = labels.size() / count;
  integers_ = !is_float(labels.dtype());
  const auto all = labels.to_doubles();
  values_.assign(all.begin(), all.end());
  const auto bad = std::find_if(values_.begin(), values_.end(), [](float v) { return !std::isfinite(v); });
  if (bad != values_.end()) throw InvalidData(fmt::format("target {} holds {}, expected finite numbers", (bad - values_.begin()) / width_, *bad));
}

void Answers::values(std::int64_t i, std::span<float> out) const {
  const auto first = values_.begin() + static_cast<std::ptrdiff_t>(i * width_);
  std::copy(first, first + static_cast<std::ptrdiff_t>(width_), out.begin());
}

std::unique_ptr<Dataset> open_arrays(const std::string& path, Tensor samples, Tensor labels, Tensor weights, const DatasetOptions& o) {
  return with_context([&] { return quote_whole(path); },
                      [&]() -> std::unique_ptr<Dataset> {
                        if (samples.rank() < 2)
                          throw InvalidData(fmt::format("samples must lie along a first dimension, the shape is {}", to_string(samples.shape())));
                        if (samples.shape()[0] > kMostSamples)
                          throw InvalidData(fmt::format("there are {} samples, more than the limit of {}", samples.shape()[0], kMostSamples));
                        Answers answers(labels, weights, samples.shape()[0], o.targets);
                        return std::make_unique<Arrays>(path, std::move(samples), std::move(answers), o);
                      });
}

// The labels of x.npy are x_y.npy, or y.npy in the same folder.
std::unique_ptr<Dataset> open_npy(const std::string& path, const DatasetOptions& o) {
  const fs::path file(path);
  for (const fs::path& labels : {file.parent_path() / (file.stem().string() + "_y.npy"), file.parent_path() / "y.npy"}) {
    if (labels != file && exists(labels.string())) return open_arrays(path, read_npy(path), read_npy(labels.string()), {}, o);
  }
  return open_arrays(path, read_npy(path), {}, {}, o);
}

std::unique_ptr<Dataset> open_npz(const std::string& path, const DatasetOptions& o) {
  const NpzFile file(path);
  const auto pairs = pairs_for(o.part);
  std::string known;
  for (const bool labelled : {true, false}) {
    for (const Pair& p : pairs) {
      if (file.has(p.x) && (!labelled || file.has(p.y))) {
        const bool weighted = labelled && p.part != Part::kMeasuring && file.has("sample_weight");
        return open_arrays(fmt::format("{}:{}", path, p.x), file.read(p.x), labelled ? file.read(p.y) : Tensor(),
                           weighted ? file.read("sample_weight") : Tensor(), o);
      }
      if (labelled) known += fmt::format("{}{}/{}", known.empty() ? "" : ", ", p.x, p.y);
    }
  }
  throw InvalidData(fmt::format("{} holds no samples under a known name ({})", quote_whole(path), known));
}

}  // namespace tandem::io
