#include "runtime/graph/passes.h"

#include <fmt/format.h>

#include "runtime/graph/pass_support.h"

namespace tandem {

std::optional<float> scalar_constant(const Graph& graph, const Node& node, std::size_t i) {
  const Tensor* t = constant_operand(graph, node, i);
  if (!t || t->dtype() != DType::kF32 || t->size() != 1) return std::nullopt;
  return t->as<float>()[0];
}

void sweep(Graph& graph) {
  std::erase_if(graph.nodes, [](const Node& n) { return n.op.empty(); });
  remove_dead_nodes(graph);
}

std::vector<std::string> run_passes(Graph& graph) {
  struct Pass {
    int (*run)(Graph&);
    const char* what;
  };
  static constexpr Pass kPasses[] = {
      {cancel_transposes, "transposes cancelled or merged"},
      {fold_pads, "Pad nodes taken into the next convolution or pool"},
      {fold_into_convolutions, "normalisations and per-channel scalings folded into convolutions"},
      {fuse_epilogues, "activations and additions computed by the convolution before or behind"},
      {fuse_separable, "depthwise convolutions joined with the 1x1 convolution behind"},
  };
  std::vector<std::string> done;
  for (const Pass& pass : kPasses) {
    if (const int n = pass.run(graph)) done.push_back(fmt::format("{} {}", n, pass.what));
  }
  return done;
}

}  // namespace tandem
