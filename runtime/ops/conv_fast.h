// The convolutions that run on the hot kernels: channels-last, f32 or stored bf16. What they refuse, plain_conv takes.
#pragma once

#include <optional>

#include "runtime/cpu/depthwise.h"
#include "runtime/ops/conv_params.h"
#include "runtime/ops/product_plan.h"

namespace tandem {

// As a matrix product over output pixels: any group, up to three spatial dimensions. As a depthwise convolution: one channel and one output
// per group, up to two. Operand 3, where present, is the residual. Nothing when layouts, types or sizes do not fit.
// `mirrored`: the weights are a ConvTranspose's and their taps run backwards.
std::optional<Kernel> fast_conv(CpuContext&, const ConvParams&, bool mirrored = false);
// A transposed convolution of stride 1: the mirrored convolution. Others: a product, or a depthwise convolution, for each remainder of the
// output position by the strides; up to three dimensions.
std::optional<Kernel> fast_conv_transpose(CpuContext&, const ConvParams&);

// ---- shared by them

// One channel and one output per group, at most two spatial dimensions, operands as fast_conv wants them.
Kernel fast_depthwise(CpuContext&, const ConvParams&, bool mirrored);
Kernel fast_depthwise_transpose(CpuContext&, const ConvParams&);
// True for an absent operand or a channels-last activation of the output's type.
bool is_hot_activation(const TensorDesc&, DType);
// How one image's output pixels are cut: tasks of about as many pixels, in multiples of `unit`, worked on at most `block` at a time, times
// groups of output panels.
struct PixelCut {
  std::int64_t images = 0, pixels = 0, unit = 1, block = 0, pixel_tasks = 0;
  std::int64_t panels = 0, panel_groups = 1;
  int tasks() const { return static_cast<int>(images * pixel_tasks * panel_groups); }
  struct Part {
    std::int64_t image, first, last, first_panel, last_panel;
  };
  Part part(int task) const;
};
// `split`: smallest number of outputs that a group of panels is worth.
PixelCut cut_pixels(const ProductPlan&, std::int64_t images, std::int64_t pixels, std::int64_t outputs, std::int64_t split);
// Most pixels that cut_pixels puts in a block.
inline constexpr std::int64_t kLargestBlock = 192;
DepthwiseWindow depthwise_window(const Window&);
// Sets GemmBlock::next to the pixels that come into sight, about, when the block of outputs behind `last` is worked on. `image`: the image's
// first pixel of x, `pixel_bytes` apart.
struct Sight {
  std::int64_t in_pixels = 0, out_pixels = 0, seen = 0;  // seen: how far the window reaches beyond its own output
};
Sight sight_of(const Window&);
void fetch_next(const Sight&, const void* image, std::int64_t pixel_bytes, std::int64_t first, std::int64_t last, GemmBlock&);
// Floats from one row of a product's left side to the next in scratch: rows a power of two apart would share cache sets.
inline std::int64_t padded_row(std::int64_t depth) { return (depth + 15) / 16 * 16 + (depth % 512 == 0 ? 16 : 0); }
// Depthwise weights are f32 numbers, rounded to bf16 where the activations are.
inline float depthwise_weight(float w, bool rounded) { return rounded ? static_cast<float>(BFloat16(w)) : w; }

}  // namespace tandem
