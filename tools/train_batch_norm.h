// What `tandem train` decides and says about batch normalisation.
#pragma once

#include <string>

#include "parallel/trainer.h"
#include "tools/console.h"

namespace tandem::cli {

// Fills in --bn where it was not given: frozen where an exporter put the statistics into the scales, else sync.
void choose_batch_norm(const Graph&, std::string& bn, const std::string& variance, const Console&);

// Warns when a layer takes its statistics from few values. `batch`: shape of the network's input.
void warn_of_few_values(const Graph&, const TrainerOptions&, const Shape& batch, const Console&);

}  // namespace tandem::cli
