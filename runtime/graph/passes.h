// Optimising passes on an inferred graph (types and shapes known). Each keeps the function; --no-passes leaves them out. Every pass copies
// a constant before it changes it, since constants may have other readers.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace tandem {

// All passes in their order; gives one line for each kind of thing done ("2 transposes cancelled").
std::vector<std::string> run_passes(Graph&);

// Conv, ConvTranspose -> BatchNormalization, or Mul / Add / Sub / Div by per-channel constants: into the weights and bias.
// It wants no shapes, so that `convert --inference` can fold a graph whose sizes stay open. Returns the number of nodes folded away.
int fold_into_convolutions(Graph&);
// Transpose nodes move behind elementwise nodes; pairs that meet cancel or become one.
int cancel_transposes(Graph&);
// Pad with zeros (constant mode, spatial axes only) into the padding of a following Conv, or of an average pool that counts it; with
// edge values into that of a MaxPool whose windows they cannot change.
int fold_pads(Graph&);
// Conv -> FusedConv with activation, residual Add, and the ReLU in front; depthwise Conv -> 1x1 Conv into FusedSeparable.
int fuse_epilogues(Graph&);
int fuse_separable(Graph&);
// BatchNormTraining -> Relu, before gradients are added. Not among run_passes.
int fuse_batch_norm_activation(Graph&);

}  // namespace tandem
