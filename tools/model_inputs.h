// Inputs for a network that nobody gave data for: `plan`, `bench` and `inspect`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "tools/option_set.h"

namespace tandem::cli {

struct ShapeFlags {
  std::int64_t batch = 0;           // 0: what the model fixes, else 1
  std::int64_t size = 0;            // height and width where the model leaves them open; 0: not given
  std::vector<std::string> shapes;  // "NAME=1x3x224x224"
};
// --batch-size, --size, --shape.
void declare_shapes(OptionSet&, ShapeFlags&);

// Shapes for the graph's inputs, no -1. Throws UsageError when the flags contradict the model or leave a dimension open, saying which.
std::vector<Shape> concrete_shapes(const Graph&, const ShapeFlags&);
// The same; nothing where the model leaves a dimension open and the flags do not close it.
std::optional<std::vector<Shape>> known_shapes(const Graph&, const ShapeFlags&);
// True when dimension 0 of the first input may be any number.
bool has_dynamic_batch(const Graph&);
// Tensors of these shapes: floats uniform in [0, 1), integers 0, the same for the same seed.
std::vector<Tensor> random_inputs(const Graph&, const std::vector<Shape>& shapes, std::uint64_t seed);

}  // namespace tandem::cli
