// ConvGradWeight(X, dY): the gradient of a convolution's weights, dW[m][c][tap] = sum over images and output positions of
// dY[m] * X[c] under the tap. Attributes: kernel_shape, strides, dilations, pads, group, as the convolution's.
//
// The order of the sums follows from the shapes alone: tasks cut dW, never the positions.
#pragma once

#include <optional>

#include "runtime/ops/conv_params.h"

namespace tandem {

// X and dY channels-last in f32 or stored bf16 (both alike), dW f32 channels-last, up to three spatial dimensions: a matrix product over
// blocks of positions, with dY transposed and X gathered. Nothing when the operands do not fit.
std::optional<Kernel> product_grad_weight(CpuContext&, const ConvParams&);
// The same for one channel and one output a group, up to two spatial dimensions.
std::optional<Kernel> depthwise_grad_weight(CpuContext&, const ConvParams&);

}  // namespace tandem
