// MaxPool, AveragePool, LpPool and their global forms. Channels-last f32 and bf16 maxima and means run on vectorised rows
// (runtime/cpu/pool_rows.h); every other case (types, layouts, indices, Lp) on plain rows in double.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/cpu/pool_rows.h"
#include "runtime/ops/conv_params.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pool_walk.h"

namespace tandem {
namespace {

// ---- shape pass

constexpr DType kFloats[] = {DType::kF32, DType::kBF16, DType::kF64};
constexpr DType kMaxTypes[] = {DType::kF32, DType::kBF16, DType::kF64, DType::kI8, DType::kU8};

std::vector<std::int64_t> spatial(InferContext& c) {
  c.expect_rank(0, 3, 2 + static_cast<std::int64_t>(kMostSpatial));
  return {c.shape(0).begin() + 2, c.shape(0).end()};
}

void finish(InferContext& c, PoolParams p) {
  if (p.kind == PoolKind::kLp && p.p < 1) throw InvalidModel(fmt::format("attribute p must be at least 1, is {}", p.p));
  const Shape out = image_shape(c.shape(0)[0], c.shape(0)[1], p.window);
  c.set_output(0, c.dtype(0), out);
  if (p.kind == PoolKind::kMax) c.set_output(1, DType::kI64, out);
  c.set_params(std::move(p));
}

PoolParams windowed(InferContext& c, PoolKind kind) {
  c.expect_dtype(0, kind == PoolKind::kMax ? std::span<const DType>(kMaxTypes) : std::span<const DType>(kFloats));
  const auto input = spatial(c);
  PoolParams p;
  p.kind = kind;
  p.window = resolve_window(read_window(c.attributes(), input.size()), input);
  return p;
}

void infer_max(InferContext& c) {
  PoolParams p = windowed(c, PoolKind::kMax);
  p.column_major = c.attributes().integer("storage_order", 0) != 0;
  finish(c, std::move(p));
}

void infer_average(InferContext& c) {
  PoolParams p = windowed(c, PoolKind::kAverage);
  p.count_pads = c.attributes().integer("count_include_pad", 0) != 0;
  finish(c, std::move(p));
}

void infer_lp(InferContext& c) {
  PoolParams p = windowed(c, PoolKind::kLp);
  p.p = c.attributes().integer("p", 2);
  finish(c, std::move(p));
}

// One window over the whole image.
template <PoolKind kind>
void infer_global(InferContext& c) {
  c.expect_dtype(0, kFloats);
  const auto input = spatial(c);
  if (std::find(input.begin(), input.end(), 0) != input.end()) {
    throw InvalidModel(fmt::format("the input {} has no cells to pool", to_string(c.shape(0))));
  }
  const std::vector<std::int64_t> ones(input.size(), 1), zeros(input.size(), 0);
  PoolParams p;
  p.kind = kind;
  p.window = {input, ones, input, ones, ones, zeros, zeros};
  if (kind == PoolKind::kLp) p.p = c.attributes().integer("p", 2);
  finish(c, std::move(p));
}

// ---- vectorised kernels

constexpr std::size_t kCellsAtOnce = 64;

void divide(const float* acc, float by, std::size_t channels, float* out) {
  if (by != 1 || acc != out) divide_row(acc, by, channels, out);
}
void divide(const float* acc, float by, std::size_t channels, BFloat16* out) { divide_row(acc, by, channels, out); }

// Accumulates the window's cells into acc, some at a time so that the list of cells stays on the stack. False: there is none.
template <class T>
bool gather_rows(const PoolGrid& g, const PoolPixel& p, bool maximum, const T* image, std::size_t channels, float* acc) {
  const T* cells[kCellsAtOnce];
  std::size_t count = 0;
  bool first = true;
  const auto flush = [&] {
    if (count == 0) return;
    if (maximum) {
      max_rows(cells, count, channels, first, acc);
    } else {
      sum_rows(cells, count, channels, first, acc);
    }
    first = false;
    count = 0;
  };
  p.for_each_cell(g, [&](std::int64_t offset, const auto&) {
    cells[count++] = image + offset;
    if (count == kCellsAtOnce) flush();
  });
  flush();
  return !first;
}

template <class T>
Kernel rows_kernel(const PoolParams& params, const PoolGrid& grid, std::int64_t out_pitch) {
  const auto run = [g = grid, maximum = params.kind == PoolKind::kMax, count_pads = params.count_pads, out_pitch](const KernelArgs& k, int task) {
    for_each_pixel(g, task, [&](const PoolPixel& p) {
      const auto channels = static_cast<std::size_t>(p.channel_end - p.channel_begin);
      T* out = k.output<T>(0) + p.out_offset(g);
      float* acc = nullptr;
      if constexpr (std::is_same_v<T, float>)
        acc = out;
      else
        acc = reinterpret_cast<float*>(k.scratch);
      if (!gather_rows(g, p, maximum, k.input<T>(0) + p.in_offset(g), channels, acc)) {
        std::fill_n(acc, channels, maximum ? -std::numeric_limits<float>::infinity() : 0.0f);
      }
      const std::int64_t cells = maximum ? 1 : count_pads ? p.padded_cells(g) : p.cells(g);
      divide(acc, static_cast<float>(std::max<std::int64_t>(1, cells)), channels, out);
      if (p.channel_end == g.channels) std::fill_n(out + channels, out_pitch - g.channels, T{});
    });
  };
  Kernel kernel = Kernel::single("hwy:pool", grid.tasks(), run);
  kernel.scratch_bytes = static_cast<std::size_t>(grid.channels_per_task) * sizeof(float);
  return kernel;
}

// ---- plain kernels

template <class T>
T from_double(double v) {
  if constexpr (std::is_integral_v<T>) v = std::max(v, static_cast<double>(std::numeric_limits<T>::lowest()));  // -inf: a window of padding
  return number_as<T>(v);
}

double power(double v, std::int64_t p) {
  v = std::abs(v);
  return p == 1 ? v : p == 2 ? v * v : std::pow(v, static_cast<double>(p));
}
double root(double v, std::int64_t p) { return p == 1 ? v : p == 2 ? std::sqrt(v) : std::pow(v, 1.0 / static_cast<double>(p)); }

// Position of a cell within its channel as MaxPool's Indices count it.
std::int64_t flat_index(const PoolGrid& g, const std::array<std::int64_t, kMostSpatial>& index, bool column_major) {
  std::int64_t flat = 0;
  const std::size_t r = g.window.rank();
  for (std::size_t i = 0; i < r; ++i) {
    const std::size_t d = column_major ? r - 1 - i : i;
    flat = flat * g.window.input[d] + index[d];
  }
  return flat;
}

template <class T>
void gather_plain(const PoolGrid& g, const PoolParams& params, const PoolPixel& p, const T* image, double* acc, std::int64_t* where) {
  const std::int64_t channels = p.channel_end - p.channel_begin, step = g.in_strides[1];
  std::fill_n(acc, channels, params.kind == PoolKind::kMax ? -std::numeric_limits<double>::infinity() : 0.0);
  bool first = true;
  p.for_each_cell(g, [&](std::int64_t offset, const auto& index) {
    const T* cell = image + offset;
    if (params.kind == PoolKind::kAverage) {
      for (std::int64_t c = 0; c < channels; ++c) acc[c] += number_as<double>(cell[c * step]);
    } else if (params.kind == PoolKind::kLp) {
      for (std::int64_t c = 0; c < channels; ++c) acc[c] += power(number_as<double>(cell[c * step]), params.p);
    } else {
      const std::int64_t at = flat_index(g, index, params.column_major);
      for (std::int64_t c = 0; c < channels; ++c) {
        const double v = number_as<double>(cell[c * step]);
        if (!first && !(v > acc[c]) && !(std::isnan(v) && !std::isnan(acc[c]))) continue;
        acc[c] = v;
        where[c] = at;
      }
    }
    first = false;
  });
}

template <class T>
Kernel plain_kernel(const PoolParams& params, const PoolGrid& grid, std::int64_t out_pitch, bool indices) {
  const auto run = [g = grid, params, out_pitch, indices](const KernelArgs& k, int task) {
    auto* acc = reinterpret_cast<double*>(k.scratch);
    auto* where = reinterpret_cast<std::int64_t*>(acc + g.channels_per_task);
    std::int64_t cells_of_channel = 1;
    for (const std::int64_t n : g.window.input) cells_of_channel *= n;
    for_each_pixel(g, task, [&](const PoolPixel& p) {
      const std::int64_t channels = p.channel_end - p.channel_begin, step = g.out_strides[1];
      gather_plain(g, params, p, k.input<T>(0) + p.in_offset(g), acc, where);
      if (params.kind == PoolKind::kAverage) {
        const auto cells = static_cast<double>(std::max<std::int64_t>(1, params.count_pads ? p.padded_cells(g) : p.cells(g)));
        for (std::int64_t c = 0; c < channels; ++c) acc[c] /= cells;
      } else if (params.kind == PoolKind::kLp) {
        for (std::int64_t c = 0; c < channels; ++c) acc[c] = root(acc[c], params.p);
      }
      T* out = k.output<T>(0) + p.out_offset(g);
      for (std::int64_t c = 0; c < channels; ++c) out[c * step] = from_double<T>(acc[c]);
      if (p.channel_end == g.channels) std::fill_n(out + channels, out_pitch - g.channels, T{});
      if (!indices) return;
      std::int64_t* out_index = k.output<std::int64_t>(1) + p.out_offset(g);
      const bool empty = p.cells(g) == 0;
      for (std::int64_t c = 0; c < channels; ++c) {
        out_index[c * step] = empty ? -1 : (p.image * g.channels + p.channel_begin + c) * cells_of_channel + where[c];
      }
      if (p.channel_end == g.channels) std::fill_n(out_index + channels, out_pitch - g.channels, 0);
    });
  };
  Kernel kernel = Kernel::single("plain", grid.tasks(), run);
  kernel.scratch_bytes = static_cast<std::size_t>(grid.channels_per_task) * (sizeof(double) + sizeof(std::int64_t));
  return kernel;
}

Kernel pool_cpu(CpuContext& c) {
  const auto& params = c.params<PoolParams>();
  const TensorDesc &in = c.in[0], &out = c.out[0];
  const PoolGrid grid(params.window, in, out);
  const bool last = in.layout == Layout::kChannelsLast && out.layout == Layout::kChannelsLast;
  const bool indices = c.has_output(1);
  // Elements of a pixel's channels in the output, its gap included; no gap in the plain layout.
  const std::int64_t pitch = out.layout == Layout::kChannelsLast ? out.channel_pitch : out.shape[1];
  if (indices && c.out[1].strides() != out.strides()) throw std::logic_error("a pool's outputs must have one layout");
  if (last && !indices && params.kind != PoolKind::kLp && in.dtype == out.dtype) {
    if (in.dtype == DType::kF32) return rows_kernel<float>(params, grid, pitch);
    if (in.dtype == DType::kBF16) return rows_kernel<BFloat16>(params, grid, pitch);
  }
  switch (in.dtype) {
    case DType::kF64:
      return plain_kernel<double>(params, grid, pitch, indices);
    case DType::kBF16:
      return plain_kernel<BFloat16>(params, grid, pitch, indices);
    case DType::kI8:
      return plain_kernel<std::int8_t>(params, grid, pitch, indices);
    case DType::kU8:
      return plain_kernel<std::uint8_t>(params, grid, pitch, indices);
    default:
      return plain_kernel<float>(params, grid, pitch, indices);
  }
}

// Indices count over the whole batch, so they are no rows of their own.
Rows max_rows_rule(const RowContext& c) { return c.node.outputs.size() > 1 && c.node.outputs[1] != kNoValue ? Rows::mixed() : rows_of_first(c); }

constexpr OpDef pool_op(std::string_view name, void (*infer)(InferContext&)) {
  return {.name = name,
          .infer = infer,
          .cpu = pool_cpu,
          .rows = rows_of_first,
          .layout = LayoutRule::kChannelsLast,
          .bf16 = Bf16Rule::kStore,
          .gradient = pool_gradient};
}

}  // namespace

std::span<const OpDef> pool_ops() {
  static const OpDef ops[] = {
      {.name = "MaxPool",
       .max_outputs = 2,
       .infer = infer_max,
       .cpu = pool_cpu,
       .rows = max_rows_rule,
       .layout = LayoutRule::kChannelsLast,
       .bf16 = Bf16Rule::kStore,
       .gradient = pool_gradient},
      pool_op("AveragePool", infer_average),
      pool_op("LpPool", infer_lp),
      pool_op("GlobalMaxPool", infer_global<PoolKind::kMax>),
      pool_op("GlobalAveragePool", infer_global<PoolKind::kAverage>),
      pool_op("GlobalLpPool", infer_global<PoolKind::kLp>),
  };
  return ops;
}

}  // namespace tandem
