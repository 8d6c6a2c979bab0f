// ConvInteger and QLinearConv: sums of (x - zero point) * (w - zero point) in int32; padding is the zero point, so it adds nothing.
#include <fmt/format.h>

#include "runtime/ops/conv_params.h"
#include "runtime/ops/families.h"
#include "runtime/ops/requantize.h"

namespace tandem {
namespace {

constexpr std::int64_t kTaskProducts = 1 << 20;

struct QuantConvParams {
  Window window;
  std::int64_t images = 0, channels = 0, outputs = 0, group = 1;
};

struct Places {
  std::size_t x, x_zero, w, w_zero;
};
constexpr Places kInteger{0, 2, 1, 3}, kLinear{0, 2, 3, 5};

// ---- shape pass

QuantConvParams parse(InferContext& c, const Places& at, Shape* out) {
  expect_bytes(c, at.x);
  expect_bytes(c, at.w);
  const Shape &x = c.shape(at.x), &w = c.shape(at.w);
  if (x.size() < 3 || w.size() != x.size()) {
    throw InvalidModel(fmt::format("X and W must have one rank of at least 3, have shapes {} and {}", to_string(x), to_string(w)));
  }
  QuantConvParams p;
  p.images = x[0];
  p.channels = x[1];
  p.outputs = w[0];
  p.group = parse_group(c.attributes());
  if (w[0] % p.group != 0 || x[1] % p.group != 0 || x[1] / p.group != w[1]) {
    throw InvalidModel(fmt::format("X {} and W {} do not fit with group {}", to_string(x), to_string(w), p.group));
  }
  p.window = conv_window(c.attributes(), x, w);
  expect_zero_point(c, at.x_zero, at.x, 0);
  expect_zero_point(c, at.w_zero, at.w, p.outputs);
  *out = image_shape(p.images, p.outputs, p.window);
  return p;
}

void infer_integer(InferContext& c) {
  Shape out;
  auto p = parse(c, kInteger, &out);
  c.set_output(0, DType::kI32, std::move(out));
  c.set_params(std::move(p));
}

void infer_linear(InferContext& c) {
  Shape out;
  auto p = parse(c, kLinear, &out);
  expect_scale(c, 1, 0);
  expect_scale(c, 4, p.outputs);
  expect_scale(c, 6, 0);
  expect_bytes(c, 7);
  expect_zero_point(c, 7, 7, 0);
  if (c.has_input(8)) {
    constexpr DType kBias[] = {DType::kI32};
    c.expect_dtype(8, kBias);
    if (c.shape(8) != Shape{p.outputs}) throw InvalidModel(fmt::format("B must have shape [{}], has {}", p.outputs, to_string(c.shape(8))));
  }
  c.set_output(0, c.dtype(7), std::move(out));
  c.set_params(std::move(p));
}

// ---- kernels

// Adds one kernel cell's share to a row of outputs along the last dimension.
template <class T>
void add_cell(const Window& w, std::int64_t kernel_index, const T* row, std::int32_t x_zero, std::int32_t weight, std::uint32_t* sums) {
  const std::size_t d = w.rank() - 1;
  const std::int64_t shift = kernel_index * w.dilations[d] - w.begin[d], step = w.strides[d];
  const std::int64_t first = shift >= 0 ? 0 : (-shift + step - 1) / step;
  const std::int64_t last = shift >= w.input[d] ? 0 : std::min(w.output[d], (w.input[d] - 1 - shift) / step + 1);
  const T* x = row + shift + first * step;
  const auto factor = static_cast<std::uint32_t>(weight);
  for (std::int64_t o = first; o < last; ++o, x += step) sums[o] += static_cast<std::uint32_t>(std::int32_t{*x} - x_zero) * factor;
}

// Where an output row lies and which kernel cells reach into the input, for all dimensions but the last.
struct RowPlace {
  std::vector<Window::Reach> reach;
  RowPlace(const Window& w, std::int64_t row) {
    reach.resize(w.rank() - 1);
    for (std::size_t d = reach.size(); d-- > 0; row /= w.output[d]) reach[d] = w.reach(d, row % w.output[d]);
  }
};

// sums[o] of one output row; `weights` begins with the output channel's first weight.
template <class T>
void row_sums(const QuantConvParams& p, const RowPlace& place, const T* image, std::int32_t x_zero, const Bytes8& w, std::int64_t first_weight,
              std::int32_t w_zero, std::uint32_t* sums) {
  const Window& win = p.window;
  const std::size_t last = win.rank() - 1;
  std::fill_n(sums, win.output[last], 0u);
  const std::int64_t cells = elements(win.kernel), plane = elements(win.input), rows = cells / win.kernel[last];
  for (std::int64_t c = 0; c < p.channels / p.group; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) {
      std::int64_t offset = 0, step = win.input[last], rest = r;
      bool inside = true;
      for (std::size_t d = last; d-- > 0; rest /= win.kernel[d]) {
        const std::int64_t k = rest % win.kernel[d];
        inside &= k >= place.reach[d].first && k < place.reach[d].last;
        offset += (place.reach[d].start + k * win.dilations[d]) * step;
        step *= win.input[d];
      }
      if (!inside) continue;
      for (std::int64_t k = 0; k < win.kernel[last]; ++k) {
        const std::int32_t weight = w.at(first_weight + c * cells + r * win.kernel[last] + k) - w_zero;
        if (weight != 0) add_cell(win, k, image + c * plane + offset, x_zero, weight, sums);
      }
    }
  }
}

// A task makes some rows (all dimensions but the last) of some planes; finish(args, channel, first element, sums) stores one row.
template <class Finish>
Kernel kernel_of(CpuContext& c, const Places& at, Finish finish) {
  const QuantConvParams p = c.params<QuantConvParams>();
  const std::int64_t columns = p.window.output.back(), rows = elements(p.window.output) / std::max<std::int64_t>(1, columns);
  const double each = static_cast<double>(columns) * static_cast<double>(elements(p.window.kernel)) * static_cast<double>(p.channels / p.group);
  const std::int64_t per_task =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(kTaskProducts / std::max(each, 1.0)), 1, std::max<std::int64_t>(1, rows));
  const std::int64_t blocks = columns == 0 ? 0 : (rows + per_task - 1) / per_task;
  const auto desc = [&](std::size_t i) { return i < c.in.size() ? c.in[i] : TensorDesc{}; };
  const TensorDesc x_desc = desc(at.x), w_desc = desc(at.w), x_zero_desc = desc(at.x_zero), w_zero_desc = desc(at.w_zero);
  Kernel kernel = Kernel::single("plain", static_cast<int>(p.images * p.outputs * blocks), [=](const KernelArgs& k, int task) {
    const std::int64_t plane = task / blocks, image = plane / p.outputs, channel = plane % p.outputs;
    Bytes8 w = Bytes8::of(k, at.w, w_desc);
    w.one_value = false;
    const std::int32_t x_zero = Bytes8::of(k, at.x_zero, x_zero_desc).at(0), w_zero = Bytes8::of(k, at.w_zero, w_zero_desc).at(channel);
    const std::int64_t in_group = p.channels / p.group, group = channel / (p.outputs / p.group);
    const std::int64_t x_first = (image * p.channels + group * in_group) * elements(p.window.input);
    const std::int64_t w_first = channel * in_group * elements(p.window.kernel);
    auto* sums = reinterpret_cast<std::uint32_t*>(k.scratch);
    for (std::int64_t row = task % blocks * per_task; row < std::min(rows, (task % blocks + 1) * per_task); ++row) {
      const RowPlace place(p.window, row);
      if (x_desc.dtype == DType::kI8) {
        row_sums(p, place, k.input<std::int8_t>(at.x) + x_first, x_zero, w, w_first, w_zero, sums);
      } else {
        row_sums(p, place, k.input<std::uint8_t>(at.x) + x_first, x_zero, w, w_first, w_zero, sums);
      }
      finish(k, channel, (plane * rows + row) * columns, sums);
    }
  });
  kernel.scratch_bytes = static_cast<std::size_t>(columns) * sizeof(std::uint32_t);
  return kernel;
}

Kernel integer_cpu(CpuContext& c) {
  const std::int64_t columns = c.params<QuantConvParams>().window.output.back();
  return kernel_of(c, kInteger, [columns](const KernelArgs& k, std::int64_t, std::int64_t first, const std::uint32_t* sums) {
    auto* y = k.output<std::int32_t>(0) + first;
    for (std::int64_t o = 0; o < columns; ++o) y[o] = static_cast<std::int32_t>(sums[o]);
  });
}

Kernel linear_cpu(CpuContext& c) {
  const std::int64_t columns = c.params<QuantConvParams>().window.output.back();
  const bool is_signed = c.out[0].dtype == DType::kI8, per_channel = c.in[4].size() > 1, has_bias = c.has_input(8);
  const TensorDesc zero = c.in[7];
  return kernel_of(c, kLinear, [=](const KernelArgs& k, std::int64_t channel, std::int64_t first, const std::uint32_t* sums) {
    const float scale = *k.input<float>(1) * k.input<float>(4)[per_channel ? channel : 0] / *k.input<float>(6);
    const std::int32_t y_zero = Bytes8::of(k, 7, zero).at(0);
    const auto bias = has_bias ? static_cast<std::uint32_t>(k.input<std::int32_t>(8)[channel]) : 0u;
    auto* y = k.output<std::uint8_t>(0) + first;
    for (std::int64_t o = 0; o < columns; ++o) {
      y[o] = static_cast<std::uint8_t>(requantize(static_cast<std::int32_t>(sums[o] + bias), scale, y_zero, is_signed));
    }
  });
}

}  // namespace

std::span<const OpDef> quant_conv_ops() {
  static const OpDef ops[] = {
      {.name = "ConvInteger", .min_inputs = 2, .max_inputs = 4, .infer = infer_integer, .cpu = integer_cpu, .rows = rows_of_first},
      {.name = "QLinearConv", .min_inputs = 8, .max_inputs = 9, .infer = infer_linear, .cpu = linear_cpu, .rows = rows_of_first},
  };
  return ops;
}

}  // namespace tandem
