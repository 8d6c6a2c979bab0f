// Conv, and FusedConv: the same with operand 3 (residual) and the attributes pre_relu, activation that graph passes set.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/graph/gradient.h"
#include "runtime/ops/conv_fast.h"
#include "runtime/ops/conv_plain.h"
#include "runtime/ops/families.h"

namespace tandem {
namespace {

constexpr std::size_t kBias = 2, kResidual = 3;

void check_residual(const InferContext& c, const Shape& y) {
  if (!c.has_input(kResidual)) return;
  c.expect_same_dtype(0, kResidual);
  if (c.shape(kResidual) != y) {
    throw InvalidModel(fmt::format("operand {} (residual) must have shape {}, has {}", kResidual, to_string(y), to_string(c.shape(kResidual))));
  }
}

ConvParams infer_conv(InferContext& c) {
  ConvParams p;
  p.group = parse_group(c.attributes());
  const Shape &x = c.shape(0), &w = c.shape(1);
  check_conv_operands(c, w.empty() ? 0 : w[0], kBias);
  if (w[0] < 1 || w[0] % p.group != 0) {
    throw InvalidModel(fmt::format("operand 1 (weights) must have a multiple of group = {} outputs, has shape {}", p.group, to_string(w)));
  }
  if (w[1] < 1 || x[1] % p.group != 0 || x[1] / p.group != w[1]) {
    throw InvalidModel(fmt::format("operand 0 has {} channels; weights {} with group {} need {} * {}", x[1], to_string(w), p.group, w[1], p.group));
  }
  p.window = conv_window(c.attributes(), x, w);
  Shape y = image_shape(x[0], w[0], p.window);
  check_residual(c, y);
  c.set_output(0, c.dtype(0), std::move(y));
  return p;
}

void infer(InferContext& c) { c.set_params(infer_conv(c)); }

void infer_fused(InferContext& c) {
  ConvParams p = infer_conv(c);
  p.pre_relu = c.attributes().integer("pre_relu", 0) != 0;
  p.activation = parse_activation(c.attributes(), "activation");
  c.set_params(std::move(p));
}

Kernel cpu(CpuContext& c) {
  const auto& p = c.params<ConvParams>();
  if (auto fast = fast_conv(c, p)) return std::move(*fast);
  return plain_conv(
      c,
      {.window = p.window, .group = p.group, .pre_relu = p.pre_relu, .activation = p.activation, .residual = c.has_input(kResidual) ? kResidual : 0});
}

void gradient(GradientContext& c) {
  const auto& p = c.params<ConvParams>();
  const Window& w = p.window;
  if (c.wants(0)) {
    // What the windows span of X begins at -begin; pads cut off what lies behind X, output_padding adds what no window reaches.
    std::vector<std::int64_t> end, extra;
    for (std::size_t d = 0; d < w.rank(); ++d) {
      const std::int64_t behind = w.strides[d] * (w.output[d] - 1) + w.extent(d) - w.begin[d] - w.input[d];
      end.push_back(std::max<std::int64_t>(0, behind));
      extra.push_back(std::max<std::int64_t>(0, -behind));
    }
    Attributes a = convolution_attributes(w, end, p.group);
    a.set("output_padding", extra);
    c.set(0, c.emit("ConvTranspose", {c.dy(), c.input(1)}, a));
  }
  if (c.wants(1)) {
    Attributes a = convolution_attributes(w, w.end, p.group);
    a.set("kernel_shape", w.kernel);
    c.set(1, c.emit("ConvGradWeight", {c.input(0), c.dy()}, a));
  }
  if (c.wants(kBias)) c.set(kBias, bias_gradient(c, c.dy()));
}

Rows fused_rows(const RowContext& c) { return rows_with_residual(c, kResidual); }

}  // namespace

std::span<const OpDef> conv_ops() {
  static const OpDef ops[] = {
      {.name = "Conv",
       .min_inputs = 2,
       .max_inputs = 3,
       .infer = infer,
       .cpu = cpu,
       .rows = rows_of_first,
       .layout = LayoutRule::kChannelsLast,
       .bf16 = Bf16Rule::kStore,
       .gradient = gradient},
      {.name = "FusedConv",
       .min_inputs = 2,
       .max_inputs = 4,
       .infer = infer_fused,
       .cpu = cpu,
       .data_inputs = 1u | 1u << kResidual,
       .rows = fused_rows,
       .layout = LayoutRule::kChannelsLast,
       .bf16 = Bf16Rule::kStore},
  };
  return ops;
}

}  // namespace tandem
