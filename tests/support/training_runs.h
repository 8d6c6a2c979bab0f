// Keras' and torch's own training runs (tests/data/training), replayed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "parallel/trainer.h"

namespace tandem::test {

// Parameters of an imported graph by Keras' names, and what the trainer needs of them.
struct Trainable {
  std::vector<TrainedParameter> parameters;
  TrainingOptions training;  // trained and running are set; nothing frozen
};
Trainable everything_trained(const Graph&);

// The arrays of a state in Keras' names and axes: "conv1/kernel", "bn1/moving_mean", "momentum/conv1/kernel".
std::map<std::string, Tensor> keras_arrays(const Graph&, const std::vector<Trainer::NamedArray>&);

}  // namespace tandem::test
