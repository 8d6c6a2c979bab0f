// FusedSeparable: a depthwise convolution and the 1x1 convolution behind it, in one kernel. Made by graph passes, from f32 graphs only.
//
// Operands: X [N, C, ...], Wd [C, 1, ...], Bd [C] (optional), Wp [O, C, 1 ...], Bp [O] (optional), residual (optional, of Y's shape).
// Attributes: strides, dilations, pads, auto_pad of the depthwise half; pre_relu; mid_activation (between the halves) and activation.
#include <fmt/format.h>

#include "runtime/cpu/activation_rows.h"
#include "runtime/ops/conv_fast.h"
#include "runtime/ops/families.h"

namespace tandem {
namespace {

constexpr std::size_t kDepthwise = 1, kDepthwiseBias = 2, kPointwise = 3, kPointwiseBias = 4, kResidual = 5;
// A group of output panels repeats the depthwise half, which is worth it only beside many outputs.
constexpr std::int64_t kSplitOutputs = 512;

struct SeparableParams {
  Window window;
  bool pre_relu = false;
  Activation middle, activation;
};

void expect_shape(const InferContext& c, std::size_t i, const Shape& want, const char* name) {
  if (!c.has_input(i)) return;
  c.expect_same_dtype(0, i);
  if (c.shape(i) != want)
    throw InvalidModel(fmt::format("operand {} ({}) must have shape {}, has {}", i, name, to_string(want), to_string(c.shape(i))));
}

void infer(InferContext& c) {
  static constexpr DType kTypes[] = {DType::kF32};
  c.expect_dtype(0, kTypes);
  c.expect_rank(0, 3, 4);
  c.expect_rank(kDepthwise, c.rank(0), c.rank(0));
  c.expect_rank(kPointwise, c.rank(0), c.rank(0));
  const Shape &x = c.shape(0), &wd = c.shape(kDepthwise), &wp = c.shape(kPointwise);
  Shape want_depthwise = wd, want_pointwise(x.size(), 1);
  want_depthwise[0] = x[1];
  want_depthwise[1] = 1;
  want_pointwise[0] = wp[0];
  want_pointwise[1] = x[1];
  expect_shape(c, kDepthwise, want_depthwise, "depthwise weights");
  expect_shape(c, kDepthwiseBias, {x[1]}, "depthwise bias");
  expect_shape(c, kPointwise, want_pointwise, "pointwise weights");
  expect_shape(c, kPointwiseBias, {wp[0]}, "pointwise bias");
  SeparableParams p;
  p.window = conv_window(c.attributes(), x, wd);
  p.pre_relu = c.attributes().integer("pre_relu", 0) != 0;
  p.middle = parse_activation(c.attributes(), "mid_activation");
  p.activation = parse_activation(c.attributes(), "activation");
  Shape y = image_shape(x[0], wp[0], p.window);
  expect_shape(c, kResidual, y, "residual");
  c.set_output(0, DType::kF32, std::move(y));
  c.set_params(std::move(p));
}

struct Job {
  SeparableParams params;
  DepthwiseWindow window;
  std::int64_t channels, outputs, x_pitch, y_pitch, residual_pitch = 0, in_pixels, out_pixels, row_pitch;
  DType type;
  bool depthwise_bias, pointwise_bias, residual;
  PixelCut cut;
  Sight sight;
  ProductPlan product;
  std::size_t depthwise_pack = 0, pointwise_pack = 0, tiles_at = 0;
  bool rounds() const { return type == DType::kBF16 && !product.amx; }  // tiles round by themselves
};

// Under bf16 the product's left side is bf16, as it would be had it been stored between two nodes.
void round_rows(const Job& j, std::int64_t count, float* rows, BFloat16* line) {
  for (std::int64_t i = 0; i < count; ++i) {
    narrow_row(rows + i * j.row_pitch, line, j.channels);
    widen_row(line, rows + i * j.row_pitch, j.channels, false);
  }
}

void run_block(const Job& j, const KernelArgs& k, const PixelCut::Part& part, std::int64_t first, std::int64_t last) {
  const std::size_t unit = size_of(j.type);
  float* rows = reinterpret_cast<float*>(k.scratch);
  DepthwiseBlock d;
  d.window = j.window;
  d.channels = j.channels;
  d.first = first;
  d.last = last;
  d.type = j.type;
  d.x = static_cast<const std::byte*>(k.in[0]) + static_cast<std::size_t>(part.image * j.in_pixels * j.x_pitch) * unit;
  d.pitch = j.x_pitch;
  d.pre_relu = j.params.pre_relu;
  d.packed = static_cast<const float*>(k.packed[j.depthwise_pack]);
  if (j.depthwise_bias) d.bias = k.input<float>(kDepthwiseBias);
  d.y = rows;
  d.y_pitch = j.row_pitch;
  d.activation = j.params.middle;
  depthwise_run(d);
  if (j.rounds()) round_rows(j, last - first, rows, reinterpret_cast<BFloat16*>(k.scratch + j.tiles_at));
  const std::int64_t pixel = part.image * j.out_pixels + first;
  GemmBlock g;
  g.rows = last - first;
  g.segment_depth = j.channels;
  g.a = rows;
  g.a_stride = j.row_pitch;
  g.outputs = j.outputs;
  g.first_panel = part.first_panel;
  g.last_panel = part.last_panel;
  if (j.pointwise_bias) g.bias = k.input<float>(kPointwiseBias);
  g.type = j.type;
  g.c = static_cast<std::byte*>(k.out[0]) + static_cast<std::size_t>(pixel * j.y_pitch) * unit;
  g.c_stride = j.y_pitch;
  if (j.residual) {
    g.residual = static_cast<const std::byte*>(k.in[kResidual]) + static_cast<std::size_t>(pixel * j.residual_pitch) * unit;
    g.residual_stride = j.residual_pitch;
  }
  g.activation = j.params.activation;
  fetch_next(j.sight, d.x, j.x_pitch * static_cast<std::int64_t>(unit), first, last, g);
  j.product.run(g, k.packed[j.pointwise_pack], k.scratch + j.tiles_at);
}

void pack_weights(CpuContext& c, Job& j) {
  const bool half = j.type == DType::kBF16;
  const std::int64_t channels = j.channels, outputs = j.outputs, taps = j.window.taps();
  j.depthwise_pack = c.pack(kDepthwise, fmt::format("depthwise{}:r{}", depthwise_lanes(), half),
                            static_cast<std::size_t>(depthwise_packed_floats(channels, taps)) * 4, [=](const Tensor& operand, void* to) {
                              const float* w = operand.as<float>().data();
                              depthwise_pack(channels, taps, static_cast<float*>(to),
                                             [&](std::int64_t ch, std::int64_t t) { return depthwise_weight(w[ch * taps + t], half); });
                            });
  j.pointwise_pack =
      c.pack(kPointwise, j.product.key() + ":t1:g1", j.product.packed_bytes(outputs), [=, product = j.product](const Tensor& operand, void* to) {
        const float* w = operand.as<float>().data();
        product.pack(outputs, static_cast<std::byte*>(to), [&](std::int64_t i, std::int64_t o) { return w[o * channels + i]; });
      });
}

Kernel cpu(CpuContext& c) {
  Job j;
  j.params = c.params<SeparableParams>();
  j.type = c.out[0].dtype;
  if (!is_hot_activation(c.in[0], j.type) || !is_hot_activation(c.out[0], j.type) ||
      !is_hot_activation(c.has_input(kResidual) ? c.in[kResidual] : TensorDesc{}, j.type)) {
    throw Unsupported("FusedSeparable takes channels-last activations of one type, float32 or bfloat16");
  }
  if (!c.constant(kDepthwise) || !c.constant(kPointwise)) throw Unsupported("FusedSeparable takes constant weights");
  j.window = depthwise_window(j.params.window);
  j.channels = c.in[0].shape[1];
  j.outputs = c.out[0].shape[1];
  j.x_pitch = c.in[0].channel_pitch;
  j.y_pitch = c.out[0].channel_pitch;
  j.in_pixels = elements(spatial(c.in[0].shape));
  j.out_pixels = elements(spatial(c.out[0].shape));
  j.sight = sight_of(j.params.window);
  j.depthwise_bias = c.has_input(kDepthwiseBias);
  j.pointwise_bias = c.has_input(kPointwiseBias);
  j.residual = c.has_input(kResidual);
  if (j.residual) j.residual_pitch = c.in[kResidual].channel_pitch;
  j.row_pitch = padded_row(j.channels);
  j.product = ProductPlan::make(c, j.type, j.channels, kLargestBlock);
  j.cut = cut_pixels(j.product, c.out[0].shape[0], j.out_pixels, j.outputs, kSplitOutputs);
  pack_weights(c, j);
  Kernel kernel;
  j.tiles_at = whole_lines(j.cut.block * j.row_pitch * 4);
  kernel.scratch_bytes = j.tiles_at + (j.rounds() ? whole_lines(j.channels * 2) : j.product.scratch_bytes());
  kernel.implementation = j.product.name() + ":separable";
  kernel.stages.push_back({j.cut.tasks(), [j](const KernelArgs& k, int task) {
                             const PixelCut::Part part = j.cut.part(task);
                             for (std::int64_t p = part.first; p < part.last; p += j.cut.block)
                               run_block(j, k, part, p, std::min(part.last, p + j.cut.block));
                           }});
  if (may_take_residual(c, kResidual)) kernel.in_place = 1u << kResidual;
  return kernel;
}

Rows rows(const RowContext& c) { return rows_with_residual(c, kResidual); }

}  // namespace

std::span<const OpDef> separable_ops() {
  static const OpDef ops[] = {
      {.name = "FusedSeparable",
       .min_inputs = 4,
       .max_inputs = 6,
       .infer = infer,
       .cpu = cpu,
       .data_inputs = 1u | 1u << kResidual,
       .rows = rows,
       .layout = LayoutRule::kChannelsLast,
       .bf16 = Bf16Rule::kStore},
  };
  return ops;
}

}  // namespace tandem
