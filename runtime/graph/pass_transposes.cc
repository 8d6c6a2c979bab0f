// Transposes move behind elementwise nodes, where two of them meet they become one or none. What is left costs nothing where it only
// reads memory in another order (runtime/plan/layout.cc).
#include <algorithm>
#include <numeric>
#include <set>

#include "runtime/graph/infer.h"
#include "runtime/graph/pass_support.h"
#include "runtime/graph/passes.h"
#include "runtime/plan/evaluate.h"

namespace tandem {
namespace {

using Perm = std::vector<std::int64_t>;

Perm perm_of(const Graph& graph, const Node& node) {
  Perm reversed(graph.value(node.inputs[0]).shape.size());
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return node.attributes.integers("perm", reversed);
}

bool is_identity(const Perm& p) { return std::is_sorted(p.begin(), p.end()); }

// The constant as it must be so that combining it before the transpose gives what combining it after gave: its axes in the old order.
Tensor before_transpose(const Tensor& t, const Perm& perm) {
  Shape padded(perm.size() - t.shape().size(), 1);
  padded.insert(padded.end(), t.shape().begin(), t.shape().end());
  Graph graph;
  Node node;
  Perm inverse(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) inverse[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  node.op = "Transpose";
  node.attributes.set("perm", inverse);
  node.inputs = {graph.add_constant("x", t.reshaped(padded))};
  node.outputs = {graph.add_value("y")};
  infer_node(graph, node);
  return evaluate(graph, node)[0];
}

bool elementwise(const std::string& op) {
  static const std::set<std::string, std::less<>> ops = {"Add",  "Sub",         "Mul",       "Div",   "Relu", "Clip", "LeakyRelu", "Sigmoid",
                                                         "Tanh", "HardSigmoid", "HardSwish", "Elu",   "Selu", "Exp",  "Sqrt",      "Neg",
                                                         "Abs",  "Erf",         "Softplus",  "Swish", "Gelu", "Mish"};
  return ops.count(op) > 0;
}

class Sinker {
 public:
  explicit Sinker(Graph& graph) : graph_(graph) {}

  int run() {
    int done = 0;
    for (bool again = true; again && done < 100000;) {
      again = false;
      const Links links(graph_);
      for (Node& node : graph_.nodes) {
        if (node.op == "Transpose" ? merge(links, node) : sink(links, node)) {
          again = true;
          ++done;
          break;
        }
      }
      if (again) {
        std::erase_if(graph_.nodes, [](const Node& n) { return n.op.empty(); });
        sort_topologically(graph_);
        remove_dead_nodes(graph_);
      }
    }
    return done;
  }

 private:
  Node* transpose_of(const Links& links, ValueId id) {
    const auto p = id == kNoValue ? -1 : links.producer[static_cast<std::size_t>(id)];
    return p >= 0 && graph_.nodes[static_cast<std::size_t>(p)].op == "Transpose" ? &graph_.nodes[static_cast<std::size_t>(p)] : nullptr;
  }

  // Transpose(Transpose(x)) -> one Transpose or none.
  bool merge(const Links& links, Node& node) {
    const Node* before = transpose_of(links, node.inputs[0]);
    if (!before && !is_identity(perm_of(graph_, node))) return false;
    Perm perm = perm_of(graph_, node);
    if (before) {
      const Perm first = perm_of(graph_, *before);
      for (std::int64_t& p : perm) p = first[static_cast<std::size_t>(p)];
      node.inputs[0] = before->inputs[0];
    }
    if (is_identity(perm)) {
      node.op = "Identity";
      node.attributes = {};
    } else {
      node.attributes.set("perm", perm);
    }
    infer_node(graph_, node);
    return true;
  }

  // f(Transpose(a), Transpose(b) or constant) -> Transpose(f(a, b)), so that the transposes meet the next ones.
  bool sink(const Links& links, Node& node) {
    if (!elementwise(node.op) || node.outputs.size() != 1) return false;
    const std::size_t operands = node.op == "Clip" ? 1 : node.inputs.size();
    const Shape& out = graph_.value(node.outputs[0]).shape;
    std::optional<Perm> perm;
    for (std::size_t i = 0; i < operands; ++i) {
      const ValueId id = node.inputs[i];
      if (graph_.value(id).known()) continue;
      const Node* t = transpose_of(links, id);
      if (!t || links.uses[static_cast<std::size_t>(id)] != 1 || graph_.value(id).shape != out) return false;
      if (perm && *perm != perm_of(graph_, *t)) return false;
      perm = perm_of(graph_, *t);
    }
    if (!perm) return false;
    for (std::size_t i = 0; i < operands; ++i) {
      const ValueId id = node.inputs[i];
      if (const Node* t = transpose_of(links, id))
        node.inputs[i] = t->inputs[0];
      else if (graph_.value(id).constant.rank() > 0) {
        Tensor moved = before_transpose(graph_.value(id).constant, *perm);
        node.inputs[i] = graph_.add_constant(fresh_name(graph_, graph_.value(id).name), std::move(moved));
      }
    }
    const ValueId result = node.outputs[0];
    const ValueId inner = graph_.add_value(fresh_name(graph_, graph_.value(result).name), graph_.value(result).dtype);
    node.outputs[0] = inner;
    infer_node(graph_, node);
    Node transpose;
    transpose.name = node.name;
    transpose.op = "Transpose";
    transpose.attributes.set("perm", *perm);
    transpose.inputs = {inner};
    transpose.outputs = {result};
    infer_node(graph_, transpose);
    graph_.nodes.push_back(std::move(transpose));
    return true;
  }

  Graph& graph_;
};

}  // namespace

int cancel_transposes(Graph& graph) { return Sinker(graph).run(); }

}  // namespace tandem
