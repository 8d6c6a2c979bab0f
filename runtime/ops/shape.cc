// Operators that make tensors from shapes and numbers: Shape, Size, Constant, ConstantOfShape, Range. Nearly always folded.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/ops/families.h"
#include "runtime/ops/movement.h"

namespace tandem {
namespace {

// A kernel that writes what is known already.
Kernel known_kernel(Tensor value) {
  return Kernel::single("plain:constant", 1, [value](const KernelArgs& k, int) {
    if (value.bytes() > 0) std::memcpy(k.out[0], value.data(), value.bytes());
  });
}

struct Known {
  Tensor value;
};

Kernel cpu_known(CpuContext& c) { return known_kernel(c.params<Known>().value); }

void set_known(InferContext& c, Tensor value) {
  c.set_output(0, value.dtype(), value.shape());
  c.set_params(Known{std::move(value)});
}

void infer_shape(InferContext& c) {
  const Shape& x = c.shape(0);
  const std::int64_t rank = c.rank(0);
  const auto clamped = [&](std::int64_t at) { return static_cast<std::size_t>(std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank)); };
  const std::size_t start = clamped(c.attributes().integer("start", 0)), end = std::max(start, clamped(c.attributes().integer("end", rank)));
  set_known(c, Tensor::ints(std::span(x).subspan(start, end - start)));
}

void infer_size(InferContext& c) { set_known(c, Tensor::scalar<std::int64_t>(elements(c.shape(0)))); }

// ---- Constant

Tensor constant_value(const Attributes& a) {
  if (a.has("value")) return a.tensor("value");
  if (a.has("value_float")) return Tensor::scalar(a.real("value_float"));
  if (a.has("value_int")) return Tensor::scalar(a.integer("value_int"));
  if (a.has("value_ints")) return Tensor::ints(a.integers("value_ints"));
  if (a.has("value_floats")) {
    const auto values = a.reals("value_floats");
    return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, std::span(values));
  }
  throw Unsupported("only constants given by value, value_float(s) or value_int(s) are supported");
}

void infer_constant(InferContext& c) { set_known(c, constant_value(c.attributes())); }

// ---- ConstantOfShape

void infer_constant_of_shape(InferContext& c) {
  Tensor value = c.attributes().has("value") ? c.attributes().tensor("value") : Tensor::scalar(0.0f);
  if (value.size() != 1) throw InvalidModel(fmt::format("value must be one element, has shape {}", to_string(value.shape())));
  c.expect_rank(0, 1, 1);
  c.set_output(0, value.dtype(), c.host_ints(0));
  c.set_params(Known{std::move(value)});
}

Kernel cpu_constant_of_shape(CpuContext& c) {
  const Tensor& value = c.params<Known>().value;
  const Shape& y = c.out[0].shape;
  return move_kernel("plain:fill", c.out,
                     {{0, 0, StridedCopy(y, {value.dtype(), std::vector<std::int64_t>(y.size(), 0)}, side_of(c.out[0])), value}});
}

// ---- Range

std::int64_t range_count(double start, double limit, double delta) {
  const double count = std::ceil((limit - start) / delta);
  if (!(count < 0x1p61)) throw InvalidModel(fmt::format("a range from {} to {} by {} has no sensible length", start, limit, delta));
  return count > 0 ? static_cast<std::int64_t>(count) : 0;
}

std::int64_t range_count(std::int64_t start, std::int64_t limit, std::int64_t delta) {
  const bool up = delta > 0;
  if (up ? limit <= start : limit >= start) return 0;
  const auto a = static_cast<std::uint64_t>(start), b = static_cast<std::uint64_t>(limit), d = static_cast<std::uint64_t>(delta);
  const std::uint64_t count = ((up ? b - a : a - b) - 1) / (up ? d : -d) + 1;
  if (count >= std::uint64_t{1} << 61) throw InvalidModel(fmt::format("a range from {} to {} by {} is too long", start, limit, delta));
  return static_cast<std::int64_t>(count);
}

void infer_range(InferContext& c) {
  static constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kI16, DType::kI32, DType::kI64};
  c.expect_dtype(0, kTypes);
  for (std::size_t i = 0; i < 3; ++i) {
    c.expect_same_dtype(0, i);
    if (elements(c.shape(i)) != 1) throw InvalidModel(fmt::format("operand {} must be one value, has shape {}", i, to_string(c.shape(i))));
  }
  std::int64_t count = 0;
  if (is_float(c.dtype(0))) {
    count = range_count(c.host(0).to_doubles()[0], c.host(1).to_doubles()[0], c.host(2).to_doubles()[0]);
  } else {
    const std::int64_t delta = c.host_ints(2)[0];
    if (delta == 0) throw InvalidModel("delta is 0");
    count = range_count(c.host_ints(0)[0], c.host_ints(1)[0], delta);
  }
  c.set_output(0, c.dtype(0), {count});
}

template <class T>
void write_range(const KernelArgs& k, std::int64_t n) {
  const T start = *k.input<T>(0), delta = *k.input<T>(2);
  T* out = k.output<T>(0);
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<T>)
      out[i] = static_cast<T>(static_cast<double>(start) + static_cast<double>(i) * static_cast<double>(delta));
    else
      out[i] = static_cast<T>(static_cast<std::uint64_t>(start) + static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(delta));
  }
}

Kernel cpu_range(CpuContext& c) {
  const std::int64_t n = c.out[0].size();
  const DType t = c.out[0].dtype;
  return Kernel::single("plain:range", 1, [n, t](const KernelArgs& k, int) {
    if (t == DType::kF32) write_range<float>(k, n);
    if (t == DType::kF64) write_range<double>(k, n);
    if (t == DType::kI16) write_range<std::int16_t>(k, n);
    if (t == DType::kI32) write_range<std::int32_t>(k, n);
    if (t == DType::kI64) write_range<std::int64_t>(k, n);
  });
}

}  // namespace

std::span<const OpDef> shape_ops() {
  static const OpDef ops[] = {
      {.name = "Shape", .infer = infer_shape, .cpu = cpu_known, .reads_shape_only = true},
      {.name = "Size", .infer = infer_size, .cpu = cpu_known, .reads_shape_only = true},
      {.name = "Constant", .min_inputs = 0, .max_inputs = 0, .infer = infer_constant, .cpu = cpu_known, .data_inputs = 0},
      {.name = "ConstantOfShape", .infer = infer_constant_of_shape, .cpu = cpu_constant_of_shape, .host_inputs = 1, .data_inputs = 0},
      {.name = "Range", .min_inputs = 3, .max_inputs = 3, .infer = infer_range, .cpu = cpu_range, .host_inputs = 7, .data_inputs = 0},
  };
  return ops;
}

}  // namespace tandem
