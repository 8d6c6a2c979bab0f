// Data sets of image files: class folders and lists.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "io/dataset.h"
#include "io/dataset_sources.h"
#include "io/listing.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {
namespace {

// Either a class number or `width` values for each path.
struct ListTargets {
  std::vector<std::int64_t> classes;
  std::vector<float> values;
  std::int64_t width = 0;
  std::vector<std::string> names;        // of the classes or the values; none where they are numbers
  std::vector<std::string> empty = {};   // class folders without an image
  std::vector<std::string> hidden = {};  // folders that are passed over
  bool integers = false;                 // values are written without a point
};

class ImageFiles final : public Dataset {
 public:
  ImageFiles(std::vector<std::string> paths, ListTargets targets, const DatasetOptions& o)
      : paths_(std::move(paths)),
        targets_(std::move(targets)),
        preprocess_(*o.preprocess),
        decode_{.exif_orientation = o.exif_orientation, .limits = {}} {}
  std::int64_t size() const override { return static_cast<std::int64_t>(paths_.size()); }
  void load(std::int64_t i, std::span<float> out) const override {
    const std::string& path = paths_[static_cast<std::size_t>(i)];
    const Image image = load_image(path, decode_);
    with_context([&] { return quote_whole(path); }, [&] { apply(preprocess_, image, out); });
  }
  std::int64_t label(std::int64_t i) const override { return targets_.classes.empty() ? -1 : targets_.classes[static_cast<std::size_t>(i)]; }
  bool has_images() const override { return true; }
  Image image(std::int64_t i) const override { return load_image(paths_[static_cast<std::size_t>(i)], decode_); }
  std::int64_t value_count() const override { return targets_.width; }
  void values(std::int64_t i, std::span<float> out) const override {
    std::copy_n(targets_.values.begin() + static_cast<std::ptrdiff_t>(i * targets_.width), targets_.width, out.begin());
  }
  bool has_integer_values() const override { return targets_.width > 0 && targets_.integers; }
  std::vector<std::string> value_names() const override { return targets_.width > 0 ? targets_.names : std::vector<std::string>(); }
  std::string name(std::int64_t i) const override { return paths_[static_cast<std::size_t>(i)]; }
  const std::vector<std::string>& class_names() const override { return targets_.width > 0 ? no_names_ : targets_.names; }
  std::int64_t sample_size() const override { return preprocess_.sample_size(); }
  std::vector<std::string> empty_classes() const override { return targets_.empty; }
  std::vector<std::string> hidden_folders() const override { return targets_.hidden; }

 private:
  const std::vector<std::string> paths_;
  const ListTargets targets_;
  const std::vector<std::string> no_names_;
  const Preprocess preprocess_;
  const DecodeOptions decode_;
};

bool is_index(const std::string& text) { return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos; }

// "-1", "3.0": a number that is no index, which would become a class of its own beside words.
bool looks_like_a_number(const std::string& text) { return !text.empty() && text.find_first_not_of("0123456789.+-") == std::string::npos; }

void need_preprocess(const DatasetOptions& o, const std::string& path) {
  if (!o.preprocess) throw InvalidData(fmt::format("{} holds images: they need a preprocessing record", quote_whole(path)));
}

// Words: the model's labels when they are among them, else the sorted words of the list itself.
ListTargets by_words(const Listing& list, std::span<const std::string> known) {
  std::unordered_map<std::string, std::int64_t> places;
  for (std::size_t i = 0; i < known.size(); ++i) places.emplace(known[i], static_cast<std::int64_t>(i));
  const auto found = [&](const std::string& word) { return places.count(word) > 0; };
  const auto refuse = [&](std::size_t i, const char* why) {
    throw InvalidData(fmt::format("{} has the label {}, {}", quote_whole(list.paths[i]), quote_whole(list.labels[i]), why));
  };
  ListTargets targets;
  if (std::any_of(list.labels.begin(), list.labels.end(), found)) {
    for (std::size_t i = 0; i < list.paths.size(); ++i) {
      if (!found(list.labels[i])) refuse(i, "which is none of the model's; others of the list are");
      targets.classes.push_back(places.at(list.labels[i]));
    }
    targets.names.assign(known.begin(), known.end());
    return targets;
  }
  for (std::size_t i = 0; i < list.paths.size(); ++i) {
    if (list.labels[i].empty()) refuse(i, "expected a class");
    if (looks_like_a_number(list.labels[i]) && !is_index(list.labels[i])) refuse(i, "expected a class number (0, 1, ...) or a class name");
  }
  for (std::size_t i = 0; i < list.paths.size(); ++i) {
    if (is_index(list.labels[i])) refuse(i, "a number, while others of the list are names");
  }
  targets.names = list.labels;
  std::sort(targets.names.begin(), targets.names.end());
  targets.names.erase(std::unique(targets.names.begin(), targets.names.end()), targets.names.end());
  for (const std::string& word : list.labels)
    targets.classes.push_back(std::lower_bound(targets.names.begin(), targets.names.end(), word) - targets.names.begin());
  return targets;
}

std::optional<float> finite_number(const std::string& text) {
  float v = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), v);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || !std::isfinite(v)) return {};
  return v;
}

bool are_numbers(const std::vector<std::string>& fields) {
  return std::all_of(fields.begin(), fields.end(), [](const std::string& f) { return finite_number(f).has_value(); });
}

// All that stands behind each path, the same number of numbers everywhere.
ListTargets by_numbers(const Listing& list) {
  ListTargets targets{.classes = {}, .values = {}, .width = std::ssize(list.fields[0]), .names = list.header, .integers = true};
  if (std::ssize(targets.names) != targets.width || targets.width == 1) targets.names.clear();
  for (std::size_t i = 0; i < list.paths.size(); ++i) {
    const auto& fields = list.fields[i];
    if (std::ssize(fields) != targets.width)
      throw InvalidData(fmt::format("line {}: {} has {} target{}, expected {} as the lines before it have", list.lines[i], quote_whole(list.paths[i]),
                                    fields.size(), fields.size() == 1 ? "" : "s", targets.width));
    for (const std::string& text : fields) {
      const auto v = finite_number(text);
      if (!v)
        throw InvalidData(
            fmt::format("line {}: {} has the label {}, expected a number", list.lines[i], quote_whole(list.paths[i]), quote_whole(text)));
      targets.values.push_back(*v);
      targets.integers = targets.integers && text.find_first_not_of("0123456789+-") == std::string::npos;
    }
  }
  return targets;
}

// Rows with a single 1 among zeros, as classes.
bool take_one_hot(ListTargets& targets) {
  const auto width = static_cast<std::size_t>(targets.width);
  std::vector<std::int64_t> classes;
  for (std::size_t at = 0; at < targets.values.size(); at += width) {
    const auto row = std::span(targets.values).subspan(at, width);
    if (!is_one_hot(row)) return false;
    classes.push_back(std::find(row.begin(), row.end(), 1.0f) - row.begin());
  }
  targets.classes = std::move(classes);
  targets.values.clear();
  targets.width = 0;
  return true;
}

ListTargets targets_of(const Listing& list, const DatasetOptions& o) {
  const bool several = list.fields[0].size() > 1 && are_numbers(list.fields[0]);
  if (o.targets == Targets::kValues || (several && o.targets == Targets::kEither)) {
    ListTargets targets = by_numbers(list);
    if (o.targets == Targets::kEither) take_one_hot(targets);
    return targets;
  }
  if (several &&
      std::all_of(list.fields.begin(), list.fields.end(), [&](const auto& f) { return f.size() == list.fields[0].size() && are_numbers(f); })) {
    ListTargets rows = by_numbers(list);
    const auto width = static_cast<std::size_t>(rows.width);
    bool shares = o.targets == Targets::kShares;
    for (std::size_t at = 0; shares && at < rows.values.size(); at += width) shares = are_shares(std::span(rows.values).subspan(at, width));
    const bool one_hot = take_one_hot(rows);
    if (one_hot && o.targets == Targets::kNumbers)
      throw InvalidData(
          fmt::format("{} has {} targets, expected one class number (categorical_crossentropy takes rows)", quote_whole(list.paths[0]), width));
    if (one_hot || shares) return rows;  // else columns behind the label are about something else
  }
  if (std::all_of(list.labels.begin(), list.labels.end(), is_index)) {
    ListTargets targets;
    for (const std::string& text : list.labels) targets.classes.push_back(std::stoll(text));
    return targets;
  }
  const bool numbers = std::all_of(list.labels.begin(), list.labels.end(), [](const std::string& l) { return finite_number(l).has_value(); });
  if (o.targets == Targets::kEither && numbers) {
    Listing first = list;
    for (auto& fields : first.fields) fields.resize(1);  // what follows is about something else
    return by_numbers(first);
  }
  return by_words(list, o.labels);
}

// Folders that are all among the known classes are these: a class may be missing from a set that measures.
void take_known_classes(ClassFolders& folders, std::span<const std::string> known) {
  std::vector<std::int64_t> places;
  for (const std::string& name : folders.classes) {
    const auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end()) return;
    places.push_back(at - known.begin());
  }
  for (std::int64_t& c : folders.class_index) c = places[static_cast<std::size_t>(c)];
  folders.classes.assign(known.begin(), known.end());
}

}  // namespace

std::unique_ptr<Dataset> open_class_folders(const std::string& path, const DatasetOptions& o) {
  need_preprocess(o, path);
  if (o.targets == Targets::kValues) throw InvalidData(fmt::format("{} holds class folders, expected numbers as targets", quote_whole(path)));
  ClassFolders folders = list_class_folders(path, o.natural_order, o.part == Part::kTraining ? "train" : "val");
  if (o.part == Part::kMeasuring) take_known_classes(folders, o.labels);
  ListTargets targets{std::move(folders.class_index), {}, 0, std::move(folders.classes), std::move(folders.empty), std::move(folders.hidden)};
  return std::make_unique<ImageFiles>(std::move(folders.paths), std::move(targets), o);
}

// Labels are class indices on every line, names, or numbers.
std::unique_ptr<Dataset> open_list(const std::string& path, const DatasetOptions& o) {
  need_preprocess(o, path);
  const Listing list = list_inputs(path, false);
  if (list.labels.empty()) throw InvalidData(fmt::format("the list {} has no labels", quote_whole(path)));
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < list.paths.size(); ++i) paths.push_back(list.full(i));
  ListTargets targets = with_context([&] { return quote_whole(path); }, [&] { return targets_of(list, o); });
  return std::make_unique<ImageFiles>(std::move(paths), std::move(targets), o);
}

}  // namespace tandem::io
