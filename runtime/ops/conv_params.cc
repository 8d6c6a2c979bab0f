#include "runtime/ops/conv_params.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem {
namespace {

// Larger values cannot describe a network and would overflow the products below.
constexpr std::int64_t kLargest = std::int64_t{1} << 31;

}  // namespace

std::span<const std::int64_t> spatial(const Shape& shape) { return std::span(shape).subspan(2); }

std::vector<std::int64_t> spatial_integers(const Attributes& a, const char* name, std::size_t count, std::int64_t otherwise, std::int64_t least) {
  std::vector<std::int64_t> v = a.integers(name, std::vector<std::int64_t>(count, otherwise));
  if (v.empty()) v.assign(count, otherwise);
  if (v.size() != count) throw InvalidModel(fmt::format("attribute {} must have {} entries, has {}", name, count, v.size()));
  for (const std::int64_t x : v) {
    if (x < least || x > kLargest) throw InvalidModel(fmt::format("attribute {} must be at least {}, is {}", name, least, to_string(v)));
  }
  return v;
}

std::int64_t parse_group(const Attributes& a) {
  const std::int64_t group = a.integer("group", 1);
  if (group < 1) throw InvalidModel(fmt::format("attribute group must be at least 1, is {}", group));
  return group;
}

Window parse_window_shape(const Attributes& a, std::span<const std::int64_t> kernel) {
  Window w;
  w.kernel.assign(kernel.begin(), kernel.end());
  if (const auto stated = a.integers("kernel_shape", {}); !stated.empty() && stated != w.kernel) {
    throw InvalidModel(fmt::format("attribute kernel_shape is {}, the weights have {}", to_string(stated), to_string(kernel)));
  }
  for (const std::int64_t k : kernel) {
    if (k < 1 || k > kLargest) throw InvalidModel(fmt::format("the kernel must be at least 1 in each dimension, is {}", to_string(kernel)));
  }
  w.strides = spatial_integers(a, "strides", kernel.size(), 1, 1);
  w.dilations = spatial_integers(a, "dilations", kernel.size(), 1, 1);
  return w;
}

Window parse_window(const Attributes& a, std::span<const std::int64_t> in, std::span<const std::int64_t> kernel) {
  Window w = parse_window_shape(a, kernel);
  const std::size_t n = w.rank();
  const std::string mode = a.text("auto_pad", "NOTSET");
  w.begin.assign(n, 0);
  w.end.assign(n, 0);
  if (mode == "NOTSET" || mode.empty()) {
    const auto pads = spatial_integers(a, "pads", 2 * n, 0, 0);
    std::copy_n(pads.begin(), n, w.begin.begin());
    std::copy_n(pads.begin() + static_cast<std::ptrdiff_t>(n), n, w.end.begin());
  } else if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    for (std::size_t d = 0; d < n; ++d) {
      const std::int64_t out = (in[d] + w.strides[d] - 1) / w.strides[d];
      const std::int64_t total = std::max<std::int64_t>(0, (out - 1) * w.strides[d] + w.extent(d) - in[d]);
      w.begin[d] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.end[d] = total - w.begin[d];
    }
  } else if (mode != "VALID") {
    throw InvalidModel(fmt::format("attribute auto_pad must be NOTSET, SAME_UPPER, SAME_LOWER or VALID, is \"{}\"", mode));
  }
  return w;
}

std::vector<std::int64_t> window_output(const Window& w, std::span<const std::int64_t> in) {
  std::vector<std::int64_t> out(w.rank());
  for (std::size_t d = 0; d < out.size(); ++d) {
    const std::int64_t room = in[d] + w.begin[d] + w.end[d] - w.extent(d);
    if (room < 0) {
      throw InvalidModel(
          fmt::format("the kernel spans {} cells of spatial dimension {}, the padded input has {}", w.extent(d), d, in[d] + w.begin[d] + w.end[d]));
    }
    out[d] = room / w.strides[d] + 1;
  }
  return out;
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
