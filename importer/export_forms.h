// Forms of opset 24 in older opsets, for the exporter.
#pragma once

#include "runtime/graph/graph.h"

namespace tandem {

// The node as the opset wants it: at least oldest_opset().
Node node_at_opset(const Graph& graph, const Node& node, std::int64_t opset);

}  // namespace tandem
