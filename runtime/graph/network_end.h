// How a network ends: what classifiers and losses want to know.
#pragma once

#include "runtime/graph/graph.h"

namespace tandem {

// The node that makes the value; null for inputs and constants.
const Node* producer_of(const Graph&, ValueId);

// What turns the last scores into the graph's first output: a Softmax (also written as Exp / ReduceSum) or a Sigmoid, behind nodes that do not change
// which number belongs to which class.
struct NetworkEnd {
  enum class Activation { kNone, kSoftmax, kSigmoid } activation = Activation::kNone;
  ValueId logits = kNoValue;  // what the activation takes; the output itself where there is none
  std::int32_t node = -1;     // index into Graph::nodes of the node that makes the scores; -1 without an activation
};
NetworkEnd network_end(const Graph&);

}  // namespace tandem
