// Which operands of a node are a layer's weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace tandem::models {

enum class WeightRole { kNone, kKernel, kBias, kScale, kShift, kMean, kVariance, kSlope, kTable };

class WeightOperands {
 public:
  explicit WeightOperands(const Graph& graph) : graph_(graph), producer_(producers(graph)) {}  // which must outlive it and keep its nodes

  // Of float32 constants only. What is added to a product is its bias.
  WeightRole role(const Node& node, std::size_t operand) const;
  // All of the node's; of an Add those of the product that it adds to as well: what tells one layer from another.
  std::vector<ValueId> layer_weights(const Node& node) const;

 private:
  const Node* product_before(const Node& add, std::size_t constant) const;
  const Graph& graph_;
  const std::vector<std::int32_t> producer_;
};

}  // namespace tandem::models
