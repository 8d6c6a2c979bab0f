// Backward is more nodes: for each node on the way from the loss to what is trained, its operator (OpDef::gradient) emits the nodes that
// compute the gradients of its operands from those of its outputs. The planner and the executor know nothing of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace tandem {

// One node of the forward graph while its operator emits the backward nodes. Shapes and types of all values are known.
class GradientContext {
 public:
  // `dy`: the gradient of each output, kNoValue where nothing reaches it. `wanted`: operands whose gradient is needed.
  GradientContext(Graph& graph, const Node& node, std::vector<ValueId> dy, std::vector<bool> wanted)
      : graph_(graph), node_(node), dy_(std::move(dy)), wanted_(std::move(wanted)), gradients_(node_.inputs.size(), kNoValue) {}

  const Node& node() const { return node_; }
  const Attributes& attributes() const { return node_.attributes; }
  template <class T>
  const T& params() const {
    return *static_cast<const T*>(node_.params.get());
  }
  bool has_input(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kNoValue; }
  ValueId input(std::size_t i) const { return has_input(i) ? node_.inputs[i] : kNoValue; }
  ValueId output(std::size_t i = 0) const { return node_.outputs[i]; }
  Shape shape(ValueId id) const { return graph_.value(id).shape; }  // a copy: emitting moves the values
  DType dtype(ValueId id) const { return graph_.value(id).dtype; }
  const Tensor* constant(std::size_t i) const;  // the operand's value where it is known, else null

  // Gradient of the (scalar) objective with respect to output i; kNoValue: zero.
  ValueId dy(std::size_t i = 0) const { return i < dy_.size() ? dy_[i] : kNoValue; }
  bool wants(std::size_t i) const { return i < wanted_.size() && wanted_[i]; }
  // The gradient of operand i, of its shape and type. A wanted operand without one has gradient zero.
  void set(std::size_t i, ValueId gradient);
  // The same, for a gradient of the broadcast shape: summed over what numpy's broadcasting repeated.
  void set_summed(std::size_t i, ValueId gradient);

  // Appends a node and infers it; the id of its output (of its first, of all).
  ValueId emit(const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {});
  std::vector<ValueId> emit(const std::string& op, std::vector<ValueId> inputs, Attributes attributes, std::size_t outputs);
  ValueId constant(Tensor tensor);
  ValueId ints(std::vector<std::int64_t> values);
  // A scalar of the type of operand 0.
  ValueId number(double value);
  // `v` summed to `shape`, which broadcasts to v's.
  ValueId sum_to(ValueId v, const Shape& shape);
  ValueId reshape(ValueId v, const Shape& shape);

  const std::vector<ValueId>& gradients() const { return gradients_; }

 private:
  std::string fresh_name() const;
  Graph& graph_;
  const Node node_;
  const std::vector<ValueId> dy_;
  const std::vector<bool> wanted_;
  std::vector<ValueId> gradients_;
};

// For operators that are flat wherever they are differentiable (Floor, Sign ...).
inline void zero_gradient(GradientContext&) {}

struct GradientSeed {
  ValueId value;     // of the graph
  ValueId gradient;  // of the objective with respect to it
};

// Appends to the inferred graph what computes the gradients of `wanted` from the seeds; gives their ids, kNoValue where nothing reaches.
// Contributions of several readers are added in the order of the nodes, last reader first. Throws Unsupported naming the node whose operator
// has no gradient.
std::vector<ValueId> add_gradients(Graph&, std::span<const GradientSeed> seeds, std::span<const ValueId> wanted);

}  // namespace tandem
