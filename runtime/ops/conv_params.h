// The attributes of convolutions, parsed and checked once, for Conv, ConvTranspose and the fused forms.
#pragma once

#include <string>
#include <vector>

#include "runtime/cpu/activation.h"
#include "runtime/ops/op.h"
#include "runtime/ops/window.h"

namespace tandem {

struct ConvParams {
  Window window;
  std::int64_t group = 1;
  bool pre_relu = false;  // fused forms: ReLU on X while it is read
  Activation activation;  // fused forms: after bias and residual
};

std::int64_t parse_group(const Attributes&);
// The window of a convolution of X's spatial sizes with weights W. Throws InvalidModel naming the attribute.
Window conv_window(const Attributes&, const Shape& x, const Shape& w);
// [images, channels, the window's output...]
Shape image_shape(std::int64_t images, std::int64_t channels, const Window&);
// `name` ("activation"), and name_min, name_max (clip), name_alpha, name_beta.
Activation parse_activation(const Attributes&, const std::string& name);
// strides, dilations, pads and group of a convolution along `w`, whose pads at the end are `end`: for the nodes that a gradient emits.
Attributes convolution_attributes(const Window& w, const std::vector<std::int64_t>& end, std::int64_t group);
// The gradient of a bias, from that of Y: its sum over everything but the channels.
ValueId bias_gradient(GradientContext&, ValueId dy);
// X and W of a convolution agree in type and rank, B fits. `outputs`: channels of Y.
void check_conv_operands(const InferContext&, std::int64_t outputs, std::size_t bias);

std::span<const std::int64_t> spatial(const Shape& shape);  // without the first two dimensions

// True when the output may lie in the residual's memory: not when it is X as well, whose pixels are read again and again.
bool may_take_residual(const CpuContext&, std::size_t residual);

// Operand 0 batched, operand `residual` (where present) batched alike, all others invariant.
Rows rows_with_residual(const RowContext&, std::size_t residual);

}  // namespace tandem
