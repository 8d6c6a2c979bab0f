// Data sets of image files: class folders and lists.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "io/dataset.h"
#include "io/dataset_sources.h"
#include "io/listing.h"
#include "io/read_file.h"
#include "runtime/base/error.h"

namespace tandem::io {
namespace {

class ImageFiles final : public Dataset {
 public:
  // Either a class number or a value for each path.
  ImageFiles(std::vector<std::string> paths, std::vector<std::int64_t> labels, std::vector<float> values, std::vector<std::string> classes,
             const DatasetOptions& o)
      : paths_(std::move(paths)),
        labels_(std::move(labels)),
        values_(std::move(values)),
        classes_(std::move(classes)),
        preprocess_(*o.preprocess),
        decode_{.exif_orientation = o.exif_orientation, .limits = {}} {}
  std::int64_t size() const override { return static_cast<std::int64_t>(paths_.size()); }
  void load(std::int64_t i, std::span<float> out) const override {
    const std::string& path = paths_[static_cast<std::size_t>(i)];
    const Image image = load_image(path, decode_);
    with_context([&] { return quoted(path); }, [&] { apply(preprocess_, image, out); });
  }
  std::int64_t label(std::int64_t i) const override { return labels_.empty() ? -1 : labels_[static_cast<std::size_t>(i)]; }
  bool has_images() const override { return true; }
  Image image(std::int64_t i) const override { return load_image(paths_[static_cast<std::size_t>(i)], decode_); }
  std::int64_t value_count() const override { return values_.empty() ? 0 : 1; }
  void values(std::int64_t i, std::span<float> out) const override { out[0] = values_[static_cast<std::size_t>(i)]; }
  std::string name(std::int64_t i) const override { return paths_[static_cast<std::size_t>(i)]; }
  const std::vector<std::string>& class_names() const override { return classes_; }
  std::int64_t sample_size() const override { return preprocess_.sample_size(); }

 private:
  const std::vector<std::string> paths_;
  const std::vector<std::int64_t> labels_;
  const std::vector<float> values_;
  const std::vector<std::string> classes_;
  const Preprocess preprocess_;
  const DecodeOptions decode_;
};

bool is_index(const std::string& text) { return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos; }

// "-1", "3.0": a number that is no index, which would become a class of its own beside words.
bool looks_like_a_number(const std::string& text) { return !text.empty() && text.find_first_not_of("0123456789.+-") == std::string::npos; }

void need_preprocess(const DatasetOptions& o, const std::string& path) {
  if (!o.preprocess) throw InvalidData(fmt::format("{} holds images: they need a preprocessing record", quoted(path)));
}

struct Classes {
  std::vector<std::int64_t> index;
  std::vector<std::string> names;  // none where the list has numbers
};

// Words: the model's labels when they are among them, else the sorted words of the list itself.
Classes by_words(const Listing& list, std::span<const std::string> known) {
  std::unordered_map<std::string, std::int64_t> places;
  for (std::size_t i = 0; i < known.size(); ++i) places.emplace(known[i], static_cast<std::int64_t>(i));
  const auto found = [&](const std::string& word) { return places.count(word) > 0; };
  const auto refuse = [&](std::size_t i, const char* why) {
    throw InvalidData(fmt::format("{} has the label {}, {}", quoted(list.paths[i]), quoted(list.labels[i]), why));
  };
  Classes classes;
  if (std::any_of(list.labels.begin(), list.labels.end(), found)) {
    for (std::size_t i = 0; i < list.paths.size(); ++i) {
      if (!found(list.labels[i])) refuse(i, "which is none of the model's; others of the list are");
      classes.index.push_back(places.at(list.labels[i]));
    }
    classes.names.assign(known.begin(), known.end());
    return classes;
  }
  for (std::size_t i = 0; i < list.paths.size(); ++i) {
    if (list.labels[i].empty()) refuse(i, "expected a class");
    if (looks_like_a_number(list.labels[i]) && !is_index(list.labels[i])) refuse(i, "expected a class number (0, 1, ...) or a class name");
  }
  for (std::size_t i = 0; i < list.paths.size(); ++i) {
    if (is_index(list.labels[i])) refuse(i, "a number, while others of the list are names");
  }
  classes.names = list.labels;
  std::sort(classes.names.begin(), classes.names.end());
  classes.names.erase(std::unique(classes.names.begin(), classes.names.end()), classes.names.end());
  for (const std::string& word : list.labels)
    classes.index.push_back(std::lower_bound(classes.names.begin(), classes.names.end(), word) - classes.names.begin());
  return classes;
}

std::vector<float> number_labels(const Listing& list) {
  std::vector<float> values;
  for (std::size_t i = 0; i < list.labels.size(); ++i) {
    const std::string& text = list.labels[i];
    float v = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), v);
    if (end.ec != std::errc() || end.ptr != text.data() + text.size() || !std::isfinite(v))
      throw InvalidData(fmt::format("{} has the label {}, expected a number", quoted(list.paths[i]), quoted(text)));
    values.push_back(v);
  }
  return values;
}

}  // namespace

std::unique_ptr<Dataset> open_class_folders(const std::string& path, const DatasetOptions& o) {
  need_preprocess(o, path);
  if (o.targets == Targets::kValues) throw InvalidData(fmt::format("{} holds class folders, expected numbers as targets", quoted(path)));
  ClassFolders folders = list_class_folders(path, o.natural_order, o.part == Part::kTraining ? "train" : "val");
  return std::make_unique<ImageFiles>(std::move(folders.paths), std::move(folders.class_index), std::vector<float>(), std::move(folders.classes), o);
}

// Labels are class indices on every line, or names.
std::unique_ptr<Dataset> open_list(const std::string& path, const DatasetOptions& o) {
  need_preprocess(o, path);
  const Listing list = list_inputs(path, false);
  if (list.labels.empty()) throw InvalidData(fmt::format("the list {} has no labels", quoted(path)));
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < list.paths.size(); ++i) paths.push_back(list.full(i));
  Classes classes;
  std::vector<float> values;
  if (o.targets == Targets::kValues) {
    values = with_context([&] { return quoted(path); }, [&] { return number_labels(list); });
  } else if (std::all_of(list.labels.begin(), list.labels.end(), is_index)) {
    for (const std::string& text : list.labels) classes.index.push_back(std::stoll(text));
  } else {
    classes = with_context([&] { return quoted(path); }, [&] { return by_words(list, o.labels); });
  }
  return std::make_unique<ImageFiles>(std::move(paths), std::move(classes.index), std::move(values), std::move(classes.names), o);
}

}  // namespace tandem::io
