// Data sets of image files: class folders and lists.
#include <fmt/format.h>

#include <algorithm>

#include "io/dataset.h"
#include "io/dataset_sources.h"
#include "io/listing.h"
#include "io/read_file.h"
#include "runtime/base/error.h"

namespace tandem::io {
namespace {

class ImageFiles final : public Dataset {
 public:
  ImageFiles(std::vector<std::string> paths, std::vector<std::int64_t> labels, std::vector<std::string> classes, const DatasetOptions& o)
      : paths_(std::move(paths)),
        labels_(std::move(labels)),
        classes_(std::move(classes)),
        preprocess_(*o.preprocess),
        decode_{.exif_orientation = o.exif_orientation, .limits = {}} {}
  std::int64_t size() const override { return static_cast<std::int64_t>(paths_.size()); }
  void load(std::int64_t i, std::span<float> out) const override {
    apply(preprocess_, load_image(paths_[static_cast<std::size_t>(i)], decode_), out);
  }
  std::int64_t label(std::int64_t i) const override { return labels_.empty() ? -1 : labels_[static_cast<std::size_t>(i)]; }
  std::string name(std::int64_t i) const override { return paths_[static_cast<std::size_t>(i)]; }
  const std::vector<std::string>& class_names() const override { return classes_; }
  std::int64_t sample_size() const override { return preprocess_.sample_size(); }

 private:
  const std::vector<std::string> paths_;
  const std::vector<std::int64_t> labels_;
  const std::vector<std::string> classes_;
  const Preprocess preprocess_;
  const DecodeOptions decode_;
};

bool is_number(const std::string& text) { return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos; }

}  // namespace

void need_preprocess(const DatasetOptions& o, const std::string& path) {
  if (!o.preprocess) throw InvalidData(fmt::format("{} holds images: they need a preprocessing record", quoted(path)));
}

std::unique_ptr<Dataset> open_class_folders(const std::string& path, const DatasetOptions& o) {
  need_preprocess(o, path);
  ClassFolders folders = list_class_folders(path, o.natural_order);
  return std::make_unique<ImageFiles>(std::move(folders.paths), std::move(folders.class_index), std::move(folders.classes), o);
}

// Labels are class indices, or names: of the model's labels, else of the sorted names of the list itself.
std::unique_ptr<Dataset> open_list(const std::string& path, const DatasetOptions& o) {
  need_preprocess(o, path);
  const Listing list = list_inputs(path, false);
  if (list.labels.empty()) throw InvalidData(fmt::format("the list {} has no labels", quoted(path)));
  std::vector<std::string> paths, classes;
  for (std::size_t i = 0; i < list.paths.size(); ++i) paths.push_back(list.full(i));
  std::vector<std::int64_t> labels;
  if (std::all_of(list.labels.begin(), list.labels.end(), is_number)) {
    for (const std::string& text : list.labels) labels.push_back(std::stoll(text));
  } else {
    classes.assign(list.labels.begin(), list.labels.end());
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    if (classes.front().empty()) throw InvalidData(fmt::format("the list {} has lines without a label", quoted(path)));
    for (const std::string& text : list.labels) labels.push_back(std::lower_bound(classes.begin(), classes.end(), text) - classes.begin());
  }
  return std::make_unique<ImageFiles>(std::move(paths), std::move(labels), std::move(classes), o);
}

}  // namespace tandem::io
