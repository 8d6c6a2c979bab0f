// Values that are cheap to compute again are not kept for the backward pass: their node is repeated just before its first backward reader.
#pragma once

#include <cstddef>

#include "runtime/graph/graph.h"

namespace tandem {

enum class Recompute {
  kNothing,
  kCheap,      // normalisations, activations, dropout: one stored tensor for each convolution, normalisation and activation
  kDepthwise,  // depthwise convolutions too
  kBlocks,     // everything between two residual additions (or pools): only what they make is kept
};

// `forward_nodes`: so many nodes in front make the forward pass, those behind read what it made. The repeated nodes run the same kernels on the same
// operands: no bit changes. Gives the number of nodes repeated.
int recompute(Graph&, std::size_t forward_nodes, Recompute what);

}  // namespace tandem
