// ConvTranspose: the data gradient of a convolution as an operator of its own.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/graph/gradient.h"
#include "runtime/ops/conv_fast.h"
#include "runtime/ops/conv_plain.h"
#include "runtime/ops/families.h"

namespace tandem {
namespace {

constexpr std::size_t kBias = 2;

// Pads from a wanted output size: total = stride * (in - 1) + output_padding + extent - out, at least 0; the odd cell goes to the end for
// SAME_UPPER and to the beginning otherwise.
void pads_for(Window& w, std::size_t d, std::int64_t total, bool upper) {
  total = std::max<std::int64_t>(0, total);
  w.begin[d] = upper ? total / 2 : total - total / 2;
  w.end[d] = total - w.begin[d];
}

Window transposed_window(const Attributes& a, std::span<const std::int64_t> in, std::span<const std::int64_t> kernel) {
  const WindowAttributes read = read_window(a, in.size(), kernel);
  const bool upper = read.auto_pad == AutoPad::kSameUpper, same = upper || read.auto_pad == AutoPad::kSameLower;
  const auto extra = spatial_integers(a, "output_padding", in.size(), 0, 0);
  const auto wanted = a.has("output_shape") ? spatial_integers(a, "output_shape", in.size(), 0, 1) : std::vector<std::int64_t>{};
  Window w{{in.begin(), in.end()}, {}, read.kernel, read.strides, read.dilations, read.begin, read.end};
  for (std::size_t d = 0; d < w.rank(); ++d) {
    const std::int64_t full = w.strides[d] * (in[d] - 1) + extra[d] + w.extent(d);
    if (!wanted.empty()) {
      pads_for(w, d, full - wanted[d], upper);
      w.output.push_back(wanted[d]);
      continue;
    }
    if (same) pads_for(w, d, full - in[d] * w.strides[d], upper);
    w.output.push_back(full - w.begin[d] - w.end[d]);
    if (w.output.back() < 1) throw InvalidModel(fmt::format("pads leave no output in spatial dimension {} (size {} before pads)", d, full));
  }
  return w;
}

void infer(InferContext& c) {
  ConvParams p;
  p.group = parse_group(c.attributes());
  const Shape &x = c.shape(0), &w = c.shape(1);
  const std::int64_t outputs = w.size() > 1 ? elements(std::vector{w[1], p.group}) : 0;
  check_conv_operands(c, outputs, kBias);
  if (x[1] != w[0] || x[1] % p.group != 0 || outputs < 1) {
    throw InvalidModel(fmt::format("operand 0 has {} channels; weights {} with group {} do not fit", x[1], to_string(w), p.group));
  }
  p.window = transposed_window(c.attributes(), spatial(x), spatial(w));
  c.set_output(0, c.dtype(0), image_shape(x[0], outputs, p.window));
  c.set_params(std::move(p));
}

Kernel cpu(CpuContext& c) {
  const auto& p = c.params<ConvParams>();
  if (auto fast = fast_conv_transpose(c, p)) return std::move(*fast);
  return plain_conv(c, {.window = p.window, .transposed = true, .group = p.group});
}

// The first cells of `v` along the spatial dimensions.
ValueId first_cells(GradientContext& c, ValueId v, const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> axes;
  for (std::size_t d = 0; d < sizes.size(); ++d) axes.push_back(static_cast<std::int64_t>(d) + 2);
  return c.emit("Slice", {v, c.ints(std::vector<std::int64_t>(sizes.size(), 0)), c.ints(sizes), c.ints(axes)});
}

// X lies to Y as the output of a convolution to its input.
void gradient(GradientContext& c) {
  const auto& p = c.params<ConvParams>();
  const Window& w = p.window;
  ValueId dy = c.dy();
  // The convolution's pads: what Y lacks behind the last window. Cells of Y that would make a further window are cut off: nothing reaches them.
  std::vector<std::int64_t> end, used;
  for (std::size_t d = 0; d < w.rank(); ++d) {
    const std::int64_t spanned = w.strides[d] * (w.input[d] - 1) + w.extent(d) - w.begin[d];
    end.push_back(std::max<std::int64_t>(0, spanned - w.output[d]));
    used.push_back(std::min(w.output[d], spanned + w.strides[d] - 1));
  }
  if (c.wants(kBias)) c.set(kBias, bias_gradient(c, dy));
  if ((c.wants(0) || c.wants(1)) && used != w.output) dy = first_cells(c, dy, used);
  Attributes a = convolution_attributes(w, end, p.group);
  if (c.wants(0)) c.set(0, c.emit("Conv", {dy, c.input(1)}, a));
  a.set("kernel_shape", w.kernel);
  if (c.wants(1)) c.set(1, c.emit("ConvGradWeight", {dy, c.input(0)}, a));
}

}  // namespace

std::span<const OpDef> conv_transpose_ops() {
  static const OpDef ops[] = {
      {.name = "ConvTranspose",
       .min_inputs = 2,
       .max_inputs = 3,
       .infer = infer,
       .cpu = cpu,
       .rows = rows_of_first,
       .layout = LayoutRule::kChannelsLast,
       .bf16 = Bf16Rule::kStore,
       .gradient = gradient},
  };
  return ops;
}

}  // namespace tandem
