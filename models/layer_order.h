// Keras' order of layers for a graph. Inside of models/.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace tandem::models {

// `layer_of`: node index -> layer, for the nodes that hold parameters; neighbours of one layer (depthwise and pointwise, product and bias) count
// as one. Layers no output depends on come last, in the order of nodes.
std::vector<std::string> layer_order(const Graph&, const std::map<std::size_t, std::string>& layer_of);

}  // namespace tandem::models
