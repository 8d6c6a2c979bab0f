#include "runtime/ops/conv_params.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/graph/gradient.h"

namespace tandem {
std::span<const std::int64_t> spatial(const Shape& shape) { return std::span(shape).subspan(2); }

std::int64_t parse_group(const Attributes& a) {
  const std::int64_t group = a.integer("group", 1);
  if (group < 1) throw InvalidModel(fmt::format("attribute group must be at least 1, is {}", group));
  return group;
}

Window conv_window(const Attributes& a, const Shape& x, const Shape& w) {
  return resolve_window(read_window(a, x.size() - 2, spatial(w)), spatial(x));
}

Shape image_shape(std::int64_t images, std::int64_t channels, const Window& w) {
  Shape s{images, channels};
  s.insert(s.end(), w.output.begin(), w.output.end());
  return s;
}

Activation parse_activation(const Attributes& a, const std::string& name) {
  Activation r;
  const std::string kind = a.text(name, "none");
  if (!activation_of(kind, r.kind)) throw InvalidModel(fmt::format("attribute {} is \"{}\", which is no known activation", name, kind));
  if (r.kind == ActivationKind::kClip) {
    r.alpha = a.real(name + "_min", -std::numeric_limits<float>::infinity());
    r.beta = a.real(name + "_max", std::numeric_limits<float>::infinity());
  } else {
    const bool hard = r.kind == ActivationKind::kHardSigmoid;
    r.alpha = a.real(name + "_alpha", hard ? 0.2f : (r.kind == ActivationKind::kElu ? 1.0f : 0.01f));
    r.beta = a.real(name + "_beta", hard ? 0.5f : 0.0f);
  }
  return r;
}

Attributes convolution_attributes(const Window& w, const std::vector<std::int64_t>& end, std::int64_t group) {
  std::vector<std::int64_t> pads = w.begin;
  pads.insert(pads.end(), end.begin(), end.end());
  Attributes a;
  a.set("strides", w.strides);
  a.set("dilations", w.dilations);
  a.set("pads", pads);
  a.set("group", group);
  return a;
}

ValueId bias_gradient(GradientContext& c, ValueId dy) {
  Shape channels(c.shape(dy).size(), 1);
  channels[1] = c.shape(dy)[1];
  return c.reshape(c.sum_to(dy, channels), {channels[1]});
}

void check_conv_operands(const InferContext& c, std::int64_t outputs, std::size_t bias) {
  static constexpr DType kFloats[] = {DType::kF32, DType::kBF16, DType::kF64};
  c.expect_dtype(0, kFloats);
  c.expect_same_dtype(0, 1);
  c.expect_rank(0, 3, 32);
  c.expect_rank(1, c.rank(0), c.rank(0));
  if (!c.has_input(bias)) return;
  c.expect_same_dtype(0, bias);
  if (c.shape(bias) != Shape{outputs}) {
    throw InvalidModel(fmt::format("operand {} (bias) must have shape [{}], has {}", bias, outputs, to_string(c.shape(bias))));
  }
}

bool may_take_residual(const CpuContext& c, std::size_t residual) { return c.has_input(residual) && c.node().inputs[residual] != c.node().inputs[0]; }

Rows rows_with_residual(const RowContext& c, std::size_t residual) {
  if (!c.inputs[0].is_batched()) return Rows::mixed();
  for (std::size_t i = 1; i < c.inputs.size(); ++i) {
    if (c.node.inputs[i] == kNoValue) continue;
    if (c.inputs[i].is_batched() != (i == residual)) return Rows::mixed();
    if (i == residual && c.inputs[i].per_sample != c.inputs[0].per_sample) return Rows::mixed();
  }
  return c.output_shape()[0] == c.inputs[0].per_sample * c.batch ? c.inputs[0] : Rows::mixed();
}

}  // namespace tandem
