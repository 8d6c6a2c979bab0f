// The attributes of convolutions, parsed and checked once, for Conv, ConvTranspose and the fused forms.
#pragma once

#include <string>
#include <vector>

#include "runtime/cpu/activation.h"
#include "runtime/ops/op.h"

namespace tandem {

// Sliding window of a convolution; one entry per spatial dimension, pads resolved (auto_pad is gone).
struct Window {
  std::vector<std::int64_t> kernel, strides, dilations, begin, end;
  std::size_t rank() const { return kernel.size(); }
  std::int64_t taps() const { return elements(kernel); }
  std::int64_t extent(std::size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }  // input cells that one output spans
};

struct ConvParams {
  Window window;
  std::int64_t group = 1;
  bool pre_relu = false;  // fused forms: ReLU on X while it is read
  Activation activation;  // fused forms: after bias and residual
};

// FusedSeparable: depthwise convolution, then 1x1.
struct SeparableParams {
  Window window;
  bool pre_relu = false;
  Activation middle, activation;
};

// Reads kernel_shape, strides, dilations, pads and auto_pad for spatial input sizes `in` and weights whose spatial shape is `kernel`.
// SAME: out = ceil(in / stride), total = max(0, (out - 1) * stride + extent - in), the odd cell at the end (UPPER) or the beginning (LOWER).
// Throws InvalidModel naming the attribute.
Window parse_window(const Attributes&, std::span<const std::int64_t> in, std::span<const std::int64_t> kernel);
// strides, dilations, kernel_shape alone (pads stay empty): what Conv and ConvTranspose share.
Window parse_window_shape(const Attributes&, std::span<const std::int64_t> kernel);
// An attribute with one integer per spatial dimension, each at least `least`; all `otherwise` when it is absent.
std::vector<std::int64_t> spatial_integers(const Attributes&, const char* name, std::size_t count, std::int64_t otherwise, std::int64_t least);
std::int64_t parse_group(const Attributes&);
// floor((in + begin + end - extent) / stride) + 1 per dimension; throws InvalidModel where the window is larger than the padded input.
std::vector<std::int64_t> window_output(const Window&, std::span<const std::int64_t> in);
// `name` ("activation"), and name_min, name_max (clip), name_alpha, name_beta.
Activation parse_activation(const Attributes&, const std::string& name);
// X and W of a convolution agree in type and rank, B fits. `outputs`: channels of Y.
void check_conv_operands(const InferContext&, std::int64_t outputs, std::size_t bias);

std::span<const std::int64_t> spatial(const Shape& shape);  // without the first two dimensions

// True when the output may lie in the residual's memory: not when it is X as well, whose pixels are read again and again.
bool may_take_residual(const CpuContext&, std::size_t residual);

// Operand 0 batched, operand `residual` (where present) batched alike, all others invariant.
Rows rows_with_residual(const RowContext&, std::size_t residual);

}  // namespace tandem
