#include "tools/train_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/batch_source.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::cli {
namespace {

void check_classes(const io::Dataset& training, const io::Dataset& validation) {
  const auto &mine = training.class_names(), &theirs = validation.class_names();
  if (mine == theirs) return;
  for (const std::string& name : theirs) {
    if (std::find(mine.begin(), mine.end(), name) == mine.end())
      throw InvalidData(fmt::format("the validation data has the class {}, the training data has not", quote_whole(name)));
  }
  throw InvalidData(fmt::format("the validation data has {} classes, the training data {}", theirs.size(), mine.size()));
}

// A stray number would be a head of as many outputs: class numbers have few gaps.
void check_class_numbers(const io::Dataset& data, std::int64_t classes) {
  constexpr std::int64_t kFewGaps = 10, kAlways = 1000;
  if (classes <= kAlways) return;
  std::vector<std::int64_t> labels;
  std::int64_t row = 0;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    labels.push_back(data.label(i));
    if (labels.back() > labels[static_cast<std::size_t>(row)]) row = i;
  }
  std::sort(labels.begin(), labels.end());
  const auto distinct = std::unique(labels.begin(), labels.end()) - labels.begin();
  if (classes > kFewGaps * distinct + kAlways)
    throw InvalidData(
        fmt::format("{} has label {}, which asks for {} classes, and the set has {} different labels only: --classes {} if that is meant",
                    quote_whole(data.name(row)), classes - 1, classes, distinct, classes));
}

DataClasses classes_of(const TrainOptions& o, const Graph& model, const io::Dataset& data, const std::string& loss,
                       const std::vector<std::string>& labels) {
  DataClasses classes{.names = labels, .count = data.value_count(), .loss = loss, .values = {}};
  if (data.value_count() > 0) {
    if (labels.empty()) classes.names = data.value_names();
    if (loss != "categorical") classes.values = facts_of(data);
    return classes;
  }
  if (labels.empty()) classes.names = data.class_names();
  classes.count = std::ssize(classes.names);
  for (std::int64_t i = 0; classes.names.empty() && i < data.size(); ++i) classes.count = std::max(classes.count, data.label(i) + 1);
  if (classes.names.empty() && o.training.classes == "auto" && classes.count != outputs_of(model)) check_class_numbers(data, classes.count);
  return classes;
}

// --labels: as many as the data has, or --classes says. The model's own are forgotten.
std::vector<std::string> labels_of(const TrainOptions& o, Graph& model) {
  if (o.preprocess.labels.empty()) return {};
  auto labels = resolve_labels(model, o.preprocess, 0);
  const std::string file = quote_whole(o.preprocess.labels);
  if (labels.empty()) throw InvalidData(fmt::format("there are no labels in {}", file));
  if (const std::string& n = o.training.classes; n != "auto" && n != std::to_string(labels.size()))
    throw InvalidData(fmt::format("there are {} labels in {}, --classes says {}", labels.size(), file, n));
  model.metadata["tandem.labels"] = io::labels_json(labels);
  return labels;
}

}  // namespace

TrainData open_train_data(const TrainOptions& o, Graph& model, const io::Preprocess& p) {
  io::DatasetOptions options{.preprocess = p, .natural_order = o.preprocess.class_order == "natural", .exif_orientation = o.exif};
  options.part = io::Part::kTraining;
  options.targets = targets_for(o.training.loss);
  if (!o.val_data.empty() && o.val_split > 0) throw UsageError("--val-data and --val-split contradict each other: give one of them");
  const auto labels = labels_of(o, model);
  options.labels = labels;
  TrainData data;
  data.training = io::open_dataset(o.data, options);
  check_labelled(*data.training, o.data);
  data.loss = choose_loss(model, *data.training, o.training.loss, true);
  options.targets = data.loss.targets;
  // Whole numbers that are no classes.
  if ((options.targets == io::Targets::kValues) != (data.training->value_count() > 0)) data.training = io::open_dataset(o.data, options);
  const std::int64_t values = data.training->value_count();
  if (values > 0 && !labels.empty() && std::ssize(labels) != values)
    throw InvalidData(fmt::format("there are {} labels in {}, {} has {} targets for each sample", labels.size(), quote_whole(o.preprocess.labels),
                                  quote_whole(o.data), values));
  data.classes = classes_of(o, model, *data.training, data.loss.kind, labels);
  if (!labels.empty() && !data.training->class_names().empty())
    data.class_map = map_classes(data.training->class_names(), labels, std::ssize(labels));
  options.part = io::Part::kMeasuring;
  options.labels = data.training->class_names();
  if (!o.val_data.empty() || (o.val_split == 0 && io::has_validation_part(o.data))) {
    const std::string& path = o.val_data.empty() ? o.data : o.val_data;
    data.validation = io::open_dataset(path, options);
    check_labelled(*data.validation, path);
  } else if (o.val_split > 0) {
    auto split = io::split_by_class(*data.training, o.val_split, static_cast<std::uint64_t>(o.run.seed));
    data.validation = data.training;
    data.training_subset = std::move(split.training);
    data.validation_subset = std::move(split.validation);
  }
  if (data.validation) check_classes(*data.training, *data.validation);
  if (data.validation && data.validation->value_names() != data.training->value_names())
    throw InvalidData("the columns of the validation data are not called as those of the training data");
  return data;
}

void keep_class_names(DataClasses& classes, const std::vector<std::string>& of_run, const std::string& run) {
  if (of_run.empty()) return;
  if (classes.names.empty()) {
    classes.names = of_run;
    if (!classes.values) classes.count = std::max(classes.count, std::ssize(of_run));
    return;
  }
  for (std::size_t i = 0; i < std::max(of_run.size(), classes.names.size()); ++i) {
    const std::string before = i < of_run.size() ? quote_whole(of_run[i]) : "not there",
                      now = i < classes.names.size() ? quote_whole(classes.names[i]) : "not there";
    // Outputs that the data never had a class for are called by their number.
    const bool unused = i >= classes.names.size() && of_run[i] == std::to_string(i);
    if (before != now && !unused)
      throw InvalidData(fmt::format("option --resume: class {} of the run in {} is {}, in the data it is {}", i, quote_whole(run), before, now));
  }
}

}  // namespace tandem::cli
