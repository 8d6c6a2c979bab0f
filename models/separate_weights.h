// Weights that an exporter merged because they were equal, taken apart again.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace tandem::models {

// Exporters store equal arrays once: in a network that was never trained one array of ones is gamma and variance of many layers, and training one of
// them would train all. Gives every layer a copy of its own; a layer that is applied several times (the same operator with the same weights) goes on
// sharing. Returns the names of the constants that were copied, as they were. Computes the same function.
std::vector<std::string> separate_weights(Graph&);

}  // namespace tandem::models
