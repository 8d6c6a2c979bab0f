// The order of a Dense layer's rows behind a flatten. Inside of models/.
#pragma once

#include <optional>

#include "runtime/graph/graph.h"

namespace tandem::models {

// A product whose operand is a flattened [N, C, spatial...] tensor (a convolution's, a pool's) sums over C, spatial...; Keras flattens
// spatial..., C. Gives {C, spatial...} of the flattened tensor where the rows must be permuted, none where not (one pixel, or the graph
// transposes to NHWC first). Throws Unsupported when it cannot be told.
std::optional<Shape> flattened_shape(const Graph&, const Node& product);

}  // namespace tandem::models
