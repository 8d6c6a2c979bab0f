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

DataClasses classes_of(const TrainOptions& o, const Graph& model, const io::Dataset& data, const std::string& loss) {
  DataClasses classes{.names = {}, .count = data.value_count(), .loss = loss, .values = {}};
  if (data.value_count() > 0) {
    classes.names = data.value_names();
    if (loss != "categorical") classes.values = facts_of(data);
    return classes;
  }
  classes.names = data.class_names();
  classes.count = std::ssize(classes.names);
  for (std::int64_t i = 0; classes.names.empty() && i < data.size(); ++i) classes.count = std::max(classes.count, data.label(i) + 1);
  if (classes.names.empty() && o.training.classes == "auto" && classes.count != outputs_of(model)) check_class_numbers(data, classes.count);
  return classes;
}

}  // namespace

TrainData open_train_data(const TrainOptions& o, const Graph& model, const io::Preprocess& p) {
  io::DatasetOptions options{.preprocess = p, .natural_order = o.preprocess.class_order == "natural", .exif_orientation = o.exif};
  options.part = io::Part::kTraining;
  options.targets = targets_for(o.training.loss);
  if (!o.val_data.empty() && o.val_split > 0) throw UsageError("--val-data and --val-split contradict each other: give one of them");
  TrainData data;
  data.training = io::open_dataset(o.data, options);
  check_labelled(*data.training, o.data);
  data.loss = choose_loss(model, *data.training, o.training.loss, true);
  options.targets = data.loss.targets;
  // Whole numbers that are no classes.
  if ((options.targets == io::Targets::kValues) != (data.training->value_count() > 0)) data.training = io::open_dataset(o.data, options);
  data.classes = classes_of(o, model, *data.training, data.loss.kind);
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

}  // namespace tandem::cli
