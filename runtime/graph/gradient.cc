#include "runtime/graph/gradient.h"

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/graph/infer.h"
#include "runtime/ops/op_table.h"

namespace tandem {

const Tensor* GradientContext::constant(std::size_t i) const {
  return has_input(i) && graph_.value(node_.inputs[i]).known() ? &graph_.value(node_.inputs[i]).constant : nullptr;
}

void GradientContext::set(std::size_t i, ValueId gradient) {
  if (!wants(i)) return;
  const Value &g = graph_.value(gradient), &x = graph_.value(node_.inputs[i]);
  if (g.shape != x.shape || g.dtype != x.dtype) {
    throw std::logic_error(fmt::format("the gradient of operand {} of {} is {} {}, the operand {} {}", i, node_.op, name_of(g.dtype),
                                       to_string(g.shape), name_of(x.dtype), to_string(x.shape)));
  }
  gradients_[i] = gradient;
}

void GradientContext::set_summed(std::size_t i, ValueId gradient) {
  if (wants(i)) set(i, sum_to(gradient, shape(node_.inputs[i])));
}

std::string GradientContext::fresh_name() const { return fmt::format("gradient of {}#{}", describe(graph_, node_), graph_.values.size()); }

ValueId GradientContext::emit(const std::string& op, std::vector<ValueId> inputs, Attributes attributes) {
  return emit(op, std::move(inputs), std::move(attributes), 1)[0];
}

std::vector<ValueId> GradientContext::emit(const std::string& op, std::vector<ValueId> inputs, Attributes attributes, std::size_t outputs) {
  Node made;
  made.name = fmt::format("{}/gradient#{}", node_.name, graph_.nodes.size());
  made.op = op;
  made.attributes = std::move(attributes);
  made.inputs = std::move(inputs);
  while (!made.inputs.empty() && made.inputs.back() == kNoValue) made.inputs.pop_back();
  for (std::size_t i = 0; i < outputs; ++i) made.outputs.push_back(graph_.add_value(fresh_name()));
  infer_node(graph_, made);
  graph_.nodes.push_back(made);
  return made.outputs;
}

ValueId GradientContext::constant(Tensor tensor) { return graph_.add_constant(fresh_name(), std::move(tensor)); }

ValueId GradientContext::ints(std::vector<std::int64_t> values) { return constant(Tensor::ints(values)); }

ValueId GradientContext::number(double value) {
  return constant(dtype(node_.inputs[0]) == DType::kF64 ? Tensor::scalar(value) : Tensor::scalar(static_cast<float>(value)));
}

ValueId GradientContext::sum_to(ValueId v, const Shape& to) {
  const Shape from = shape(v);
  if (from == to) return v;
  const std::size_t lead = from.size() - to.size();
  std::vector<std::int64_t> axes;
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (d < lead || (to[d - lead] == 1 && from[d] != 1)) axes.push_back(static_cast<std::int64_t>(d));
  }
  Attributes keep;
  keep.set("keepdims", std::int64_t{1});
  return reshape(axes.empty() ? v : emit("ReduceSum", {v, ints(axes)}, keep), to);
}

ValueId GradientContext::reshape(ValueId v, const Shape& to) {
  Attributes zeros;  // a 0 is a dimension, not a copy of the operand's
  zeros.set("allowzero", std::int64_t{1});
  return shape(v) == to ? v : emit("Reshape", {v, ints(to)}, zeros);
}

namespace {

class Backward {
 public:
  Backward(Graph& graph, std::span<const GradientSeed> seeds, std::span<const ValueId> wanted)
      : graph_(graph), forward_nodes_(graph.nodes.size()), needed_(graph.values.size(), false), pending_(graph.values.size()) {
    for (const ValueId w : wanted) needed_[at(w)] = true;
    for (const Node& node : graph_.nodes) {
      bool any = false;
      for (const ValueId in : node.inputs) any = any || (in != kNoValue && needed_[at(in)]);
      for (const ValueId out : node.outputs) {
        if (any && out != kNoValue && is_float(graph_.value(out).dtype)) needed_[at(out)] = true;
      }
    }
    for (const GradientSeed& seed : seeds) pending_[at(seed.value)].push_back(seed.gradient);
  }

  void run() {
    for (std::size_t n = forward_nodes_; n-- > 0;) {
      const Node node = graph_.nodes[n];  // a copy: emitting moves the nodes
      with_context([&] { return describe(graph_, node); }, [&] { visit(node); });
    }
  }

  ValueId total(ValueId id) {
    auto& parts = pending_[at(id)];
    if (parts.empty()) return kNoValue;
    if (parts.size() > 1) {
      Node sum;
      sum.name = fmt::format("gradient of \"{}\"", graph_.value(id).name);
      sum.op = "Sum";
      sum.inputs = parts;
      sum.outputs = {graph_.add_value(fmt::format("{}#{}", sum.name, graph_.values.size()))};
      infer_node(graph_, sum);
      graph_.nodes.push_back(sum);
      parts = sum.outputs;
    }
    return parts[0];
  }

 private:
  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }

  void visit(const Node& node) {
    std::vector<bool> wanted;
    bool any_wanted = false, reached = false;
    for (const ValueId in : node.inputs) {
      wanted.push_back(in != kNoValue && needed_[at(in)] && is_float(graph_.value(in).dtype));
      any_wanted = any_wanted || wanted.back();
    }
    for (const ValueId out : node.outputs) reached = reached || (out != kNoValue && !pending_[at(out)].empty());
    if (!any_wanted || !reached) return;
    std::vector<ValueId> dy;
    for (const ValueId out : node.outputs) dy.push_back(out == kNoValue ? kNoValue : total(out));
    const OpDef& op = need_op(node.op);
    if (!op.gradient) throw Unsupported(fmt::format("{} cannot be trained through: it has no gradient", node.op));
    GradientContext context(graph_, node, std::move(dy), std::move(wanted));
    op.gradient(context);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (context.gradients()[i] != kNoValue) pending_[at(node.inputs[i])].push_back(context.gradients()[i]);
    }
  }

  Graph& graph_;
  const std::size_t forward_nodes_;
  std::vector<bool> needed_;                   // of the forward graph's values: something wanted lies before it
  std::vector<std::vector<ValueId>> pending_;  // likewise: what its readers contributed so far
};

}  // namespace

std::vector<ValueId> add_gradients(Graph& graph, std::span<const GradientSeed> seeds, std::span<const ValueId> wanted) {
  Backward backward(graph, seeds, wanted);
  backward.run();
  std::vector<ValueId> gradients;
  for (const ValueId w : wanted) gradients.push_back(backward.total(w));
  return gradients;
}

}  // namespace tandem
