#include "runtime/ops/op.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem {

ValueId InferContext::need(std::size_t i) const {
  if (!has_input(i)) throw InvalidModel(fmt::format("operand {} is required and missing", i));
  return node_.inputs[i];
}

DType InferContext::dtype(std::size_t i) const { return graph_.value(need(i)).dtype; }

const Shape& InferContext::shape(std::size_t i) const { return graph_.value(need(i)).shape; }

const Tensor* InferContext::constant(std::size_t i) const {
  if (!has_input(i)) return nullptr;
  const Value& v = graph_.value(node_.inputs[i]);
  return v.known() ? &v.constant : nullptr;
}

const Tensor& InferContext::host(std::size_t i) const {
  const Value& v = graph_.value(need(i));
  if (!v.known()) {
    throw Unsupported(fmt::format("operand {} (\"{}\") decides a shape and is computed from data; it must be constant or a graph input", i, v.name));
  }
  return v.constant;
}

void InferContext::set_output(std::size_t i, DType dtype, Shape shape) {
  if (!has_output(i)) return;
  elements(shape);  // throws when it is absurd
  Value& v = graph_.value(node_.outputs[i]);
  v.dtype = dtype;
  v.shape = std::move(shape);
  v.shape_known = true;
}

void InferContext::expect_rank(std::size_t i, std::int64_t at_least, std::int64_t at_most) const {
  const std::int64_t r = rank(i);
  if (r < at_least || r > at_most) {
    const auto want = at_least == at_most ? fmt::format("{}", at_least) : fmt::format("{} to {}", at_least, at_most);
    throw InvalidModel(fmt::format("operand {} must have rank {}, has shape {}", i, want, to_string(shape(i))));
  }
}

void InferContext::expect_dtype(std::size_t i, std::span<const DType> allowed) const {
  if (std::find(allowed.begin(), allowed.end(), dtype(i)) != allowed.end()) return;
  std::string names;
  for (const DType t : allowed) names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(t));
  throw InvalidModel(fmt::format("operand {} must be of type {}, is {}", i, names, name_of(dtype(i))));
}

void InferContext::expect_same_dtype(std::size_t a, std::size_t b) const {
  if (dtype(a) == dtype(b)) return;
  throw InvalidModel(fmt::format("operands {} and {} must have the same type, are {} and {}", a, b, name_of(dtype(a)), name_of(dtype(b))));
}

Rows rows_elementwise(const RowContext& c) {
  const Shape& out = c.output_shape();
  std::int64_t m = 0;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    if (c.node.inputs[i] == kNoValue) continue;
    const Shape& in = c.input_shape(i);
    if (c.inputs[i].is_batched()) {
      if (in.size() != out.size() || (m != 0 && m != c.inputs[i].per_sample)) return Rows::mixed();
      m = c.inputs[i].per_sample;
    } else if (in.size() == out.size() && !in.empty() && in[0] != 1) {
      return Rows::mixed();  // a constant with its own rows
    }
  }
  return !out.empty() && out[0] == m * c.batch ? Rows::batched(m) : Rows::mixed();
}

Rows rows_of_first(const RowContext& c) {
  if (!c.inputs[0].is_batched()) return Rows::mixed();
  for (std::size_t i = 1; i < c.inputs.size(); ++i) {
    if (c.inputs[i].is_batched()) return Rows::mixed();
  }
  const Shape& out = c.output_shape();
  return !out.empty() && out[0] == c.inputs[0].per_sample * c.batch ? c.inputs[0] : Rows::mixed();
}

Rows rows_contiguous(const RowContext& c) {
  const Shape& out = c.output_shape();
  if (!c.inputs[0].is_batched() || out.empty() || out[0] % c.batch != 0 || out[0] == 0) return Rows::mixed();
  return Rows::batched(out[0] / c.batch);
}

std::size_t TensorDesc::bytes() const {
  const std::size_t unit = size_of(dtype);
  if (layout == Layout::kPlain || shape[1] == 0) return static_cast<std::size_t>(size()) * unit;
  return static_cast<std::size_t>(size() / shape[1] * channel_pitch) * unit;
}

std::vector<std::int64_t> TensorDesc::strides() const {
  if (layout == Layout::kPlain) return row_major_strides(shape);
  std::vector<std::int64_t> s(shape.size());
  std::int64_t step = channel_pitch;
  for (std::size_t i = shape.size(); i-- > 2;) {
    s[i] = step;
    step *= shape[i];
  }
  s[1] = 1;
  s[0] = step;
  return s;
}

Kernel Kernel::single(std::string name, int tasks, std::function<void(const KernelArgs&, int)> run) {
  Kernel k;
  k.implementation = std::move(name);
  k.stages.push_back({tasks, std::move(run)});
  return k;
}

const Tensor* CpuContext::constant(std::size_t i) const {
  if (i >= node_.inputs.size() || node_.inputs[i] == kNoValue) return nullptr;
  const Value& v = graph_.value(node_.inputs[i]);
  return v.known() ? &v.constant : nullptr;
}

bool CpuContext::packable(std::size_t i) const {
  return i < node_.inputs.size() && node_.inputs[i] != kNoValue && (constant(i) || graph_.value(node_.inputs[i]).parameter);
}

std::size_t CpuContext::pack(std::size_t operand, std::string key, std::size_t bytes, std::function<void(const Tensor&, void*)> fill) {
  if (!packable(operand)) throw Unsupported(fmt::format("operand {} must be constant", operand));
  packs_.push_back({node_.inputs[operand], std::move(key), bytes, std::move(fill)});
  dropped_ |= 1u << operand;
  return packs_.size() - 1;
}

}  // namespace tandem
