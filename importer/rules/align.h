// Broadcasting before opset 7: an operand's dimensions start at `axis` of operand 0.
#pragma once

#include "importer/node_rewrite.h"

namespace tandem {

// Appends dimensions of size 1 to operand `i`, so that numpy's broadcasting (from the right) gives what `axis` asked for. Where ranks are not
// known the shape is computed in the graph.
void align_operand(NodeRewrite& c, std::size_t i, std::int64_t axis);

}  // namespace tandem
