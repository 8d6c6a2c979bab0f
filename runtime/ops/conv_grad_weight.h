// ConvGradWeight(X, dY): the gradient of a convolution's weights, dW[m][c][tap] = sum over images and output positions of
// dY[m] * X[c] under the tap. Attributes: kernel_shape, strides, dilations, pads, group, as the convolution's.
//
// The order of the sums follows from the shapes alone. Tasks cut dW; where that gives too few of them, positions are cut in parts as well, and a
// last stage adds the parts' sums in their order.
#pragma once

#include <optional>

#include "runtime/ops/conv_params.h"

namespace tandem {

// X and dY channels-last in f32 or stored bf16 (both alike), dW f32 channels-last, up to three spatial dimensions: a matrix product over
// blocks of positions, with dY transposed and X gathered. Nothing when the operands do not fit.
std::optional<Kernel> product_grad_weight(CpuContext&, const ConvParams&);
inline constexpr std::int64_t kMostGradParts = 8;  // and enough tasks for several threads
// Sums of several parts of the positions, `size` floats each, in Kernel::shared_bytes: [part][size].
struct GradParts {
  std::int64_t parts = 1, size = 0;
  // Books the memory of more than one part.
  void reserve(Kernel&) const;
  // Where a part's sums go: the output itself when there is but one.
  float* sums(const KernelArgs& k, std::int64_t part) const;
  // The stage that adds them into output 0 (dense), after those of the kernel.
  void add_stage(Kernel&) const;
};

// The same for one channel and one output a group, up to two spatial dimensions.
std::optional<Kernel> depthwise_grad_weight(CpuContext&, const ConvParams&);

}  // namespace tandem
