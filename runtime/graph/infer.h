// The shape pass: types, shapes and parsed attributes for a whole graph with concrete inputs, folding what is constant on the way
// (shape arithmetic becomes data, `If` with a known condition is replaced by its branch). Works on a copy that the caller owns.
#pragma once

#include <map>
#include <optional>

#include "runtime/graph/graph.h"

namespace tandem {

// What is known about the graph's inputs before planning. Keys are indices into Graph::inputs.
struct InputBinding {
  std::vector<Shape> shapes;             // one for each graph input, no -1
  std::map<std::size_t, Tensor> values;  // inputs whose values steer shapes (see steering_inputs)
};

// The shapes that the file declares, with `batch` where the first dimension is open; nothing where another is.
std::optional<InputBinding> declared_binding(const Graph&, std::int64_t batch);
// A copy of the graph after infer() for that binding; nothing where there is none or the shapes do not fit.
std::optional<Graph> inferred(const Graph&, std::int64_t batch);

// Fills dtype, shape, params and constants of every value and node; folds nodes whose operands are all known (deterministic operators
// whose outputs take at most 64 MiB, or no more bytes than their operands) and removes them.
// Throws InvalidModel or Unsupported with the node as context.
void infer(Graph&, const InputBinding&);

// Folds what needs no input at all (weights behind a Transpose, dequantised weights), once for all plans of a graph.
void fold_constants(Graph&);

// Infers one node whose input values are complete: sets params and the outputs' dtype and shape. For passes that add nodes.
void infer_node(Graph&, Node&);

// Indices of the graph inputs whose values must be known before planning: they reach, through foldable nodes alone, an operand that
// steers shapes (the shape of a Reshape, the condition of an If).
std::vector<std::size_t> steering_inputs(const Graph&);

}  // namespace tandem
