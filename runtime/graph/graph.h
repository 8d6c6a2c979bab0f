// The graph: what is computed, in ONNX operators of opset 24 (older forms are rewritten by the importer). Plain data; a copy shares
// the constants' bytes. Types and shapes of values are filled in by infer() (infer.h) for given input shapes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/tensor.h"
#include "runtime/graph/attributes.h"

namespace tandem {

using ValueId = std::int32_t;
inline constexpr ValueId kNoValue = -1;  // an optional operand that is absent

struct Value {
  std::string name;            // unique and non-empty within the graph
  DType dtype = DType::kNone;  // kNone: not known yet
  bool shape_known = false;    // rank known; single dimensions may still be -1
  Shape shape;
  Tensor constant;         // initializer, or folded by infer(); empty for computed values and graph inputs
  bool parameter = false;  // a graph input that changes only between steps (trained weights): kernels may pack it
  bool known() const { return static_cast<bool>(constant); }
};

struct Node {
  std::string name;  // may be empty; never a key
  std::string op;    // operator name in the table (runtime/ops/op_table.h)
  Attributes attributes;
  std::vector<ValueId> inputs, outputs;  // kNoValue where an optional one is absent; trailing absent ones are dropped
  std::shared_ptr<const void> params;    // the family's parsed attributes, set by infer()
};

// What the file said about a graph input or output; the border keeps it (half precision is float32 inside).
struct Declared {
  DType dtype = DType::kNone;  // as in the file, kF16 and kBF16 included
  bool shape_known = false;
  Shape shape;                       // -1: dynamic
  std::vector<std::string> symbols;  // dim_param of each dimension, "" where there is none
};

// Where the graph came from; for messages and `inspect`.
struct Origin {
  std::string file, producer, producer_version;
  std::int64_t ir_version = 0, opset = 0;
  std::vector<std::string> notes;  // what the importer rewrote or repaired, one line each
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;  // in topological order
  std::vector<ValueId> inputs, outputs;
  std::vector<Declared> declared_inputs, declared_outputs;  // one for each of inputs, outputs
  std::map<std::string, std::string> metadata;
  Origin origin;

  ValueId add_value(std::string value_name, DType dtype = DType::kNone);
  ValueId add_constant(std::string value_name, Tensor tensor);
  const Value& value(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
  Value& value(ValueId id) { return values[static_cast<std::size_t>(id)]; }
};

// node "conv1" (Conv); an unnamed node is called by its first output: node of "y" (Conv).
std::string describe(const Graph&, const Node&);
// Index of the node that makes each value, -1 for inputs and constants.
std::vector<std::int32_t> producers(const Graph&);
// For each value, how many node operands and graph outputs read it.
std::vector<std::int32_t> use_counts(const Graph&);
// Sorts nodes topologically (stable where the order is free). Throws InvalidModel naming a node on a cycle or an operand that nothing defines.
void sort_topologically(Graph&);
// Removes nodes whose outputs nobody reads, transitively.
void remove_dead_nodes(Graph&);

}  // namespace tandem
