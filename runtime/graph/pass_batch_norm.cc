// BatchNormTraining -> Relu becomes one node, whose backward pass finds from x where the ReLU let through: no normalised value is kept.
#include "runtime/graph/infer.h"
#include "runtime/graph/pass_support.h"
#include "runtime/graph/passes.h"

namespace tandem {

int fuse_batch_norm_activation(Graph& graph) {
  const Links links(graph);
  int fused = 0;
  for (Node& relu : graph.nodes) {
    if (relu.op != "Relu") continue;
    Node* norm = links.only_for_me(graph, relu.inputs[0]);
    if (!norm || norm->op != "BatchNormTraining" || !norm->attributes.text("activation", "").empty()) continue;
    norm->attributes.set("activation", std::string("Relu"));
    norm->outputs[0] = relu.outputs[0];
    relu.op.clear();
    infer_node(graph, *norm);
    ++fused;
  }
  sweep(graph);
  return fused;
}

}  // namespace tandem
