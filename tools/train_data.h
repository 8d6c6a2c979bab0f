// The data of a training run: what is trained on, what is validated on, and what its classes are.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/dataset.h"
#include "tools/train_options.h"

namespace tandem::cli {

struct TrainData {
  LossChoice loss;
  std::shared_ptr<const io::Dataset> training, validation;
  std::vector<std::int64_t> training_subset, validation_subset;  // of one set that is split
  DataClasses classes;
  std::vector<std::int64_t> class_map;  // from the set's classes to the names of --labels; empty: they are the same
  bool shares() const { return loss.kind == "categorical" && training->value_count() > 0; }
};

// Opens DATA and --val-data, or splits DATA. --labels takes the place of the labels that `model` brings. Throws InvalidData where the sets do not go
// together, with each other or with the labels, and where there are no labels or none that can be class numbers.
TrainData open_train_data(const TrainOptions&, Graph& model, const io::Preprocess&);

// A run that goes on keeps the names that it began with. Data without names takes them; InvalidData names the first class that is another one.
void keep_class_names(DataClasses&, const std::vector<std::string>& of_run, const std::string& run);

}  // namespace tandem::cli
