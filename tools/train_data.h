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
  bool shares() const { return loss.kind == "categorical" && training->value_count() > 0; }
};

// Opens DATA and --val-data, or splits DATA. Throws InvalidData where the sets do not go
// together, and where there are no labels or none that can be class numbers.
TrainData open_train_data(const TrainOptions&, const Graph& model, const io::Preprocess&);

}  // namespace tandem::cli
