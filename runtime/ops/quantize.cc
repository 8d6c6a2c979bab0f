// QuantizeLinear, DequantizeLinear (opset 24, without the 4-bit and float8 types) and DynamicQuantizeLinear. Scale and zero point: one for
// the tensor, one for each index of an axis, or one for each block of `block_size` neighbours along it. Quotients in float32, rounded half
// to even, saturated.
#include <fmt/format.h>

#include <array>

#include "runtime/base/dtype_onnx.h"
#include "runtime/cpu/map.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

enum class Grain { kTensor, kAxis, kBlock };

struct QuantParams {
  Grain grain = Grain::kTensor;
  std::size_t axis = 0;
  std::int64_t block = 0;
};

// ---- shape pass

constexpr DType kRealTypes[] = {DType::kF32, DType::kBF16, DType::kI32};
constexpr DType kScaleTypes[] = {DType::kF32, DType::kBF16};
constexpr DType kNarrowTypes[] = {DType::kU8, DType::kI8, DType::kU16, DType::kI16};
constexpr DType kStoredTypes[] = {DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kI32};

void expect_scale_shape(const InferContext& c, const Shape& want) {
  if (c.shape(1) == want) return;
  throw InvalidModel(fmt::format("operand 1 (scale) must have shape {} for an input of shape {}, has {}", to_string(want), to_string(c.shape(0)),
                                 to_string(c.shape(1))));
}

QuantParams read_grain(const InferContext& c) {
  const Shape &x = c.shape(0), &scale = c.shape(1);
  // Exporters write one scale as [] or [1], and its zero point the other way.
  const bool single = scale.size() <= 1 && elements(scale) == 1;
  const bool fits = c.has_input(2) && (c.shape(2) == scale || (single && c.shape(2).size() <= 1 && elements(c.shape(2)) == 1));
  if (c.has_input(2) && !fits) {
    throw InvalidModel(
        fmt::format("operands 1 (scale) and 2 (zero point) must have the same shape, have {} and {}", to_string(scale), to_string(c.shape(2))));
  }
  QuantParams p;
  p.block = c.attributes().integer("block_size", 0);
  if (p.block < 0) throw InvalidModel(fmt::format("attribute block_size must not be negative, is {}", p.block));
  if (p.block == 0 && single) return p;
  p.grain = p.block == 0 ? Grain::kAxis : Grain::kBlock;
  p.axis = static_cast<std::size_t>(normalise_axis(c.attributes().integer("axis", 1), c.rank(0)));
  Shape want{x[p.axis]};
  if (p.grain == Grain::kBlock) {
    want = x;
    want[p.axis] = x[p.axis] / p.block + (x[p.axis] % p.block != 0);
  }
  expect_scale_shape(c, want);
  return p;
}

DType wanted_type(const InferContext& c, DType otherwise, std::span<const DType> allowed) {
  const std::int64_t number = c.attributes().integer("output_dtype", 0);
  const DType asked = number == 0 ? otherwise : dtype_from_onnx(number);
  const DType t = asked == DType::kF16 ? DType::kF32 : asked;  // half precision is float32 within a graph
  for (const DType a : allowed) {
    if (a == t) return t;
  }
  throw InvalidModel(fmt::format("attribute output_dtype asks for {}, which is no output of {}", name_of(t), c.node().op));
}

void infer_quantize(InferContext& c) {
  c.expect_dtype(0, kRealTypes);
  c.expect_dtype(1, kScaleTypes);
  if (c.has_input(2)) c.expect_dtype(2, kNarrowTypes);
  const std::int64_t precision = c.attributes().integer("precision", 0);
  if (precision != 0 && precision != 1)
    throw Unsupported(fmt::format("attribute precision asks for element type {}; only float32 (1) is supported", precision));
  const DType narrow = wanted_type(c, c.has_input(2) ? c.dtype(2) : DType::kU8, kNarrowTypes);
  if (c.has_input(2) && c.dtype(2) != narrow) {
    throw InvalidModel(fmt::format("attribute output_dtype asks for {}, operand 2 (zero point) is {}", name_of(narrow), name_of(c.dtype(2))));
  }
  c.set_params(read_grain(c));
  c.set_output(0, narrow, c.shape(0));
}

void infer_dequantize(InferContext& c) {
  c.expect_dtype(0, kStoredTypes);
  c.expect_dtype(1, kScaleTypes);
  if (c.has_input(2)) c.expect_same_dtype(0, 2);
  c.set_params(read_grain(c));
  c.set_output(0, wanted_type(c, c.dtype(1), kScaleTypes), c.shape(0));
}

void infer_dynamic(InferContext& c) {
  constexpr DType kTypes[] = {DType::kF32};
  c.expect_dtype(0, kTypes);
  c.set_output(0, DType::kU8, c.shape(0));
  c.set_output(1, DType::kF32, {});
  c.set_output(2, DType::kU8, {});
}

// ---- kernels

// Part of the elements: loop over output, input, scale and zero point, and where each of them begins.
struct Part {
  StridedLoop loop;
  std::array<std::int64_t, 4> first;
};

using Strides = std::vector<std::int64_t>;

// The dimension `axis` of n indices in blocks: whole ones, then what is left.
std::vector<Part> block_parts(const QuantParams& p, const Shape& shape, const std::array<Strides, 4>& strides) {
  const auto at = static_cast<std::ptrdiff_t>(p.axis);
  const std::int64_t whole = shape[p.axis] / p.block;
  std::vector<Part> parts;
  Shape in_blocks = shape, rest = shape;
  in_blocks[p.axis] = whole;
  in_blocks.insert(in_blocks.begin() + at + 1, p.block);
  rest[p.axis] = shape[p.axis] % p.block;
  std::vector<Strides> of_blocks, of_rest;
  std::array<std::int64_t, 4> rest_first{};
  for (std::size_t i = 0; i < 4; ++i) {
    const bool parameter = i >= 2;
    const std::int64_t step = strides[i][p.axis];
    Strides s = strides[i];
    s[p.axis] = parameter ? 0 : step;
    of_rest.push_back(s);
    s[p.axis] = parameter ? step : step * p.block;
    s.insert(s.begin() + at + 1, parameter ? 0 : step);
    of_blocks.push_back(std::move(s));
    rest_first[i] = whole * (parameter ? step : step * p.block);
  }
  if (whole > 0) parts.push_back({StridedLoop(in_blocks, std::move(of_blocks)), {}});
  if (rest[p.axis] > 0) parts.push_back({StridedLoop(rest, std::move(of_rest)), rest_first});
  return parts;
}

std::vector<Part> make_parts(const CpuContext& c) {
  const auto& p = c.params<QuantParams>();
  const Shape& shape = c.in[0].shape;
  std::array<Strides, 4> strides{c.out[0].strides(), c.in[0].strides(), Strides(shape.size(), 0), Strides(shape.size(), 0)};
  for (const std::size_t i : {1u, 2u}) {
    if (!c.has_input(i)) continue;
    if (p.grain == Grain::kAxis) strides[i + 1][p.axis] = 1;
    if (p.grain == Grain::kBlock) strides[i + 1] = c.in[i].strides();
  }
  if (p.grain == Grain::kBlock) return block_parts(p, shape, strides);
  return {{StridedLoop(shape, {strides.begin(), strides.end()}), {}}};
}

float real_at(DType t, const void* data, std::int64_t i) {
  return t == DType::kBF16 ? static_cast<float>(static_cast<const BFloat16*>(data)[i]) : static_cast<const float*>(data)[i];
}

template <class T>
T saturated(float quotient, std::int32_t zero_point) {
  constexpr auto kLeast = static_cast<float>(std::numeric_limits<T>::lowest()), kMost = static_cast<float>(std::numeric_limits<T>::max());
  const float v = std::nearbyint(quotient) + static_cast<float>(zero_point);
  return static_cast<T>(v > kLeast ? std::min(v, kMost) : kLeast);  // what is no number gives the least
}

// One run of a part: f(element, scale, zero point) -> result. Z: type of the zero point.
template <class X, class Y, class Z, class F>
void run_part(const Part& part, DType scale_type, bool has_zero_points, const KernelArgs& k, int task, F f) {
  const StridedLoop& loop = part.loop;
  const Z* zero_points = has_zero_points ? k.input<Z>(2) : nullptr;
  loop.for_each_run(task, [&](const std::int64_t* at, std::int64_t n) {
    const X* x = k.input<X>(0) + part.first[1] + at[1];
    Y* y = k.output<Y>(0) + part.first[0] + at[0];
    const std::int64_t scale_at = part.first[2] + at[2], zero_at = part.first[3] + at[3], scale_step = loop.step(2), zero_step = loop.step(3);
    float scale = real_at(scale_type, k.in[1], scale_at);
    std::int32_t zero = zero_points ? std::int32_t{zero_points[zero_at]} : 0;
    for (std::int64_t i = 0; i < n; ++i) {
      if (scale_step != 0) scale = real_at(scale_type, k.in[1], scale_at + i * scale_step);
      if (zero_step != 0 && zero_points) zero = std::int32_t{zero_points[zero_at + i * zero_step]};
      y[i * loop.step(0)] = f(x[i * loop.step(1)], scale, zero);
    }
  });
}

template <class X, class Y, class Z, class F>
Kernel parts_kernel(const CpuContext& c, F f) {
  Kernel kernel;
  kernel.implementation = "plain";
  for (const Part& part : make_parts(c)) {
    const auto run = [part, t = c.in[1].dtype, zero = c.has_input(2), f](const KernelArgs& k, int task) {
      run_part<X, Y, Z>(part, t, zero, k, task, f);
    };
    kernel.stages.push_back({part.loop.tasks(), run});
  }
  kernel.stages.push_back({1, [out = c.out[0]](const KernelArgs& k, int) { zero_gaps(out, k.out[0], 0, out.size()); }});
  return kernel;
}

template <class F>
Kernel of_real(DType t, F&& f) {
  return t == DType::kF32 ? f(float{}) : t == DType::kBF16 ? f(BFloat16{}) : f(std::int32_t{});
}

template <class F>
Kernel of_narrow(DType t, F&& f) {
  return t == DType::kU8 ? f(std::uint8_t{}) : t == DType::kI8 ? f(std::int8_t{}) : t == DType::kU16 ? f(std::uint16_t{}) : f(std::int16_t{});
}

Kernel quantize(CpuContext& c) {
  return of_narrow(c.out[0].dtype, [&](auto narrow) {
    using Y = decltype(narrow);
    return of_real(c.in[0].dtype, [&](auto real) {
      using X = decltype(real);
      return parts_kernel<X, Y, Y>(c, [](X x, float scale, std::int32_t zero) { return saturated<Y>(static_cast<float>(x) / scale, zero); });
    });
  });
}

Kernel dequantize(CpuContext& c) {
  const auto make = [&](auto stored) {
    using X = decltype(stored);
    return of_real(c.out[0].dtype, [&](auto real) {
      using Y = decltype(real);
      return parts_kernel<X, Y, X>(
          c, [](X x, float scale, std::int32_t zero) { return static_cast<Y>(static_cast<float>(std::int64_t{x} - zero) * scale); });
    });
  };
  return c.in[0].dtype == DType::kI32 ? make(std::int32_t{}) : of_narrow(c.in[0].dtype, make);
}

// The scale covers the range of x and 0; for x of zeros it is 1.
struct Range {
  float least = 0, most = 0;
  float scale() const { return most == least ? 1.0f : (most - least) / 255.0f; }
  std::uint8_t zero_point() const { return saturated<std::uint8_t>(std::min(255.0f, std::max(0.0f, 0.0f - least / scale())), 0); }
};

Kernel dynamic(CpuContext& c) {
  const StridedLoop loop(c.in[0].shape, {c.out[0] ? c.out[0].strides() : c.in[0].strides(), c.in[0].strides()});
  Kernel kernel;
  kernel.implementation = "plain";
  kernel.shared_bytes = static_cast<std::size_t>(loop.tasks() + 1) * sizeof(Range);  // the whole one first
  kernel.stages.push_back({loop.tasks(), [loop](const KernelArgs& k, int task) {
                             Range r;
                             loop.for_each_run(task, [&](const std::int64_t* at, std::int64_t n) {
                               const float* x = k.input<float>(0) + at[1];
                               for (std::int64_t i = 0; i < n; ++i) {
                                 r.least = std::min(r.least, x[i * loop.step(1)]);
                                 r.most = std::max(r.most, x[i * loop.step(1)]);
                               }
                             });
                             reinterpret_cast<Range*>(k.shared)[task + 1] = r;
                           }});
  kernel.stages.push_back({1, [tasks = loop.tasks(), out = c.out](const KernelArgs& k, int) {
                             auto* ranges = reinterpret_cast<Range*>(k.shared);
                             Range whole;
                             for (int i = 1; i <= tasks; ++i) {
                               whole.least = std::min(whole.least, ranges[i].least);
                               whole.most = std::max(whole.most, ranges[i].most);
                             }
                             ranges[0] = whole;
                             if (out.size() > 1 && k.out[1]) *k.output<float>(1) = whole.scale();
                             if (out.size() > 2 && k.out[2]) *k.output<std::uint8_t>(2) = whole.zero_point();
                           }});
  if (!c.has_output(0)) return kernel;
  kernel.stages.push_back({loop.tasks(), [loop](const KernelArgs& k, int task) {
                             const Range whole = *reinterpret_cast<const Range*>(k.shared);
                             const float scale = whole.scale();
                             const std::int32_t zero = whole.zero_point();
                             loop.for_each_run(task, [&](const std::int64_t* at, std::int64_t n) {
                               const float* x = k.input<float>(0) + at[1];
                               auto* y = k.output<std::uint8_t>(0) + at[0];
                               for (std::int64_t i = 0; i < n; ++i) y[i * loop.step(0)] = saturated<std::uint8_t>(x[i * loop.step(1)] / scale, zero);
                             });
                           }});
  kernel.stages.push_back({1, [out = c.out[0]](const KernelArgs& k, int) { zero_gaps(out, k.out[0], 0, out.size()); }});
  return kernel;
}

// A scale for each row belongs to the row's place in the whole batch.
Rows rows(const RowContext& c) {
  const auto& p = c.params<QuantParams>();
  return p.grain != Grain::kTensor && p.axis == 0 ? Rows::mixed() : p.grain == Grain::kBlock ? Rows::mixed() : rows_of_first(c);
}

}  // namespace

std::span<const OpDef> quantize_ops() {
  static const OpDef ops[] = {
      {.name = "QuantizeLinear",
       .min_inputs = 2,
       .max_inputs = 3,
       .infer = infer_quantize,
       .cpu = quantize,
       .rows = rows,
       .layout = LayoutRule::kAny},
      {.name = "DequantizeLinear",
       .min_inputs = 2,
       .max_inputs = 3,
       .infer = infer_dequantize,
       .cpu = dequantize,
       .rows = rows,
       .layout = LayoutRule::kAny},
      {.name = "DynamicQuantizeLinear", .max_outputs = 3, .infer = infer_dynamic, .cpu = dynamic, .layout = LayoutRule::kAny},
  };
  return ops;
}

}  // namespace tandem
