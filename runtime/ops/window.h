// Arithmetic of sliding windows, shared by convolutions and pools: attributes -> padding and output size for one input.
// Spatial dimensions only, in the tensor's order; sizes in elements.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/graph/attributes.h"

namespace tandem {

enum class AutoPad : std::uint8_t { kNotSet, kSameUpper, kSameLower, kValid };

// The attributes kernel_shape, strides, dilations, pads, auto_pad and ceil_mode, with ONNX's defaults filled in. All of one length; kernel,
// strides and dilations are at least 1, pads at least 0, and every entry below 2^31. Pads are zero under kSameUpper, kSameLower and kValid.
struct WindowAttributes {
  std::vector<std::int64_t> kernel, strides, dilations, begin, end;
  AutoPad auto_pad = AutoPad::kNotSet;
  bool ceil = false;
};

// Reads and checks them for `rank` spatial dimensions. `kernel` is the kernel's size where the operator has weights (kernel_shape must then
// agree or be absent); empty: kernel_shape is required, and ceil_mode is read. Throws InvalidModel naming the attribute.
WindowAttributes read_window(const Attributes&, std::size_t rank, std::span<const std::int64_t> kernel = {});

// An attribute with `count` integers, each within [least, 2^31); all `otherwise` when it is absent. Throws InvalidModel.
std::vector<std::int64_t> spatial_integers(const Attributes&, const char* name, std::size_t count, std::int64_t otherwise, std::int64_t least);

// A window with its padding resolved; `begin` and `end` are the pads.
struct Window {
  std::vector<std::int64_t> input, output, kernel, strides, dilations, begin, end;

  std::size_t rank() const { return kernel.size(); }
  std::int64_t taps() const;                                                               // cells of the kernel
  std::int64_t extent(std::size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }  // input cells that one output spans
  // Cells of the input that output position `at` sees along dimension d: kernel indices [first, last), at input index
  // start + k * dilation. Indices outside the range fall into the padding.
  struct Reach {
    std::int64_t start = 0, first = 0, last = 0;
  };
  Reach reach(std::size_t d, std::int64_t at) const;
  // How many kernel indices at `at` lie in the input or its padding (a ceil window can hang over the padded end).
  std::int64_t padded_count(std::size_t d, std::int64_t at) const;
};

// A window of at most three dimensions as three: those that it lacks come first, one wide. For kernels that loop over depth, height and width.
struct Window3 {
  std::int64_t in[3], out[3], kernel[3], strides[3], dilations[3], begin[3];
};
Window3 three_dimensions(const Window&);

// SAME: output ceil(n / s), padding max(0, (out - 1) s + (k - 1) d + 1 - n), the odd one at the end (upper) or the start (lower); never
// negative, as TensorFlow (ONNX Runtime crops there). Explicit: floor or ceil of (n + pads - (k - 1) d - 1) / s, plus 1; with ceil
// the last window is dropped where it would start behind the input (as PyTorch and ONNX Runtime). Throws InvalidModel when a window does not fit into
// the padded input.
Window resolve_window(const WindowAttributes&, std::span<const std::int64_t> input);

}  // namespace tandem
