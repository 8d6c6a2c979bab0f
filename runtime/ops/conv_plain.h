// Convolutions of any rank, layout, type, group and dilation, forward or transposed: right everywhere, fast nowhere. The hot paths take
// what they can (conv_fast.h); everything else runs here.
//
// Each output position gathers what its window covers, then is a product with the weights in the order [group][tap][channel][output].
// f64 accumulates in f64, f32 and bf16 in f32, always in the order tap, channel: bits depend on nothing else.
#pragma once

#include "runtime/ops/conv_params.h"

namespace tandem {

struct PlainConv {
  Window window;
  bool transposed = false;  // the gradient's direction: output y takes input (y + begin - tap * dilation) / stride where that is whole
  std::int64_t group = 1;
  bool pre_relu = false;
  Activation activation;
  std::size_t residual = 0;  // operand added before the activation; 0: none
};

// Operands X, W, B (optional) of `c` in any layout; W of Conv [outputs, channels / group, ...], transposed [channels, outputs / group, ...].
// Weights that are constant are packed once, others in a stage of their own.
Kernel plain_conv(CpuContext& c, PlainConv conv);

}  // namespace tandem
