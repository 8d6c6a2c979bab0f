// MaxPoolGrad(dY, X), AveragePoolGrad(dY) and LpPoolGrad(dY, X): what the pools pass back to X. Attributes: the pool's; kernel_shape is given
// for the global forms as well, and AveragePoolGrad has input_shape (X's spatial sizes). The first largest cell of a window, in the order of
// its cells, gets a maximum's gradient.
//
// Channels-last f32 and bf16 run on vectorised rows (runtime/cpu/pool_rows.h): a task owns some rows of dX and walks the windows that reach
// into them, in the order of the outputs. Everything else runs on plain loops in double.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/cpu/activation_rows.h"
#include "runtime/cpu/pool_rows.h"
#include "runtime/graph/gradient.h"
#include "runtime/ops/conv_params.h"
#include "runtime/ops/families.h"
#include "runtime/ops/float_access.h"
#include "runtime/ops/pool_walk.h"
#include "runtime/ops/product_plan.h"

namespace tandem {

void pool_gradient(GradientContext& c) {
  if (!c.wants(0) || c.dy() == kNoValue) return;
  const auto& p = c.params<PoolParams>();
  Attributes a = c.attributes();
  a.set("kernel_shape", p.window.kernel);
  if (p.kind == PoolKind::kAverage) {
    a.set("input_shape", p.window.input);
    return c.set(0, c.emit("AveragePoolGrad", {c.dy()}, a));
  }
  c.set(0, c.emit(p.kind == PoolKind::kMax ? "MaxPoolGrad" : "LpPoolGrad", {c.dy(), c.input(0)}, a));
}

namespace {

constexpr std::size_t kDy = 0, kX = 1;

// ---- shape pass

template <PoolKind kind>
void infer(InferContext& c) {
  static constexpr DType kFloats[] = {DType::kF32, DType::kBF16, DType::kF64};
  c.expect_dtype(kDy, kFloats);
  c.expect_rank(kDy, 3, 2 + static_cast<std::int64_t>(kMostSpatial));
  const Shape& dy = c.shape(kDy);
  const std::size_t rank = dy.size() - 2;
  Shape input;
  if constexpr (kind == PoolKind::kAverage) {
    input = spatial_integers(c.attributes(), "input_shape", rank, 1, 0);
  } else {
    c.expect_same_dtype(kDy, kX);
    c.expect_rank(kX, c.rank(kDy), c.rank(kDy));
    input.assign(c.shape(kX).begin() + 2, c.shape(kX).end());
  }
  PoolParams p;
  p.kind = kind;
  p.window = resolve_window(read_window(c.attributes(), rank), input);
  p.count_pads = c.attributes().integer("count_include_pad", 0) != 0;
  p.p = c.attributes().integer("p", 2);
  Shape x{dy[0], dy[1]};
  x.insert(x.end(), input.begin(), input.end());
  if (dy != image_shape(dy[0], dy[1], p.window) || (kind != PoolKind::kAverage && x != c.shape(kX))) {
    throw InvalidModel(
        fmt::format("operand 0 {} is no output of a pool with kernel {} over {}", to_string(dy), to_string(p.window.kernel), to_string(x)));
  }
  c.set_output(0, c.dtype(kDy), std::move(x));
  c.set_params(std::move(p));
}

double divisor(const PoolParams& params, const PoolGrid& g, const PoolPixel& p) {
  return static_cast<double>(std::max<std::int64_t>(1, params.count_pads ? p.padded_cells(g) : p.cells(g)));
}

// ---- vectorised kernels

constexpr std::size_t kCellsAtOnce = 64;
constexpr std::int64_t kTaskReads = 1 << 17;  // elements of dX that a task owns, where there are as many
constexpr std::int64_t kChannelBlock = 64;    // of pools whose windows reach over the whole image

struct RowsJob {
  PoolParams params;
  PoolGrid grid;
  std::int64_t rows = 1, row_blocks = 1, channels = 1, channel_blocks = 1;  // of a task
  std::int64_t pitch, row_pixels;                                           // of dX; pixels of a row of the first spatial dimension
  std::size_t best_at = 0, where_at = 0;                                    // in scratch, behind the sums
};

struct Part {
  std::int64_t image, first_row, last_row, first_channel, channels;
};

// Cells of one window, and where their gradients go: null for rows that are not the task's.
template <class T>
struct Cells {
  const T* x[kCellsAtOnce];
  float* into[kCellsAtOnce];
  std::size_t count = 0;
};

// Calls f(cells, index of the first) for some cells of the window at a time.
template <class T, class F>
void for_some_cells(const RowsJob& j, const PoolPixel& p, const Part& part, const T* x, float* sums, std::int64_t sums_pitch, F&& f) {
  Cells<T> cells;
  std::int32_t first = 0;
  p.for_each_cell(j.grid, [&](std::int64_t offset, const auto& index) {
    const bool own = index[0] >= part.first_row && index[0] < part.last_row;
    cells.x[cells.count] = x ? x + offset : nullptr;
    cells.into[cells.count++] = own ? sums + (offset / j.pitch - part.first_row * j.row_pixels) * sums_pitch : nullptr;
    if (cells.count < kCellsAtOnce) return;
    f(cells, first);
    first += static_cast<std::int32_t>(cells.count);
    cells.count = 0;
  });
  if (cells.count > 0) f(cells, first);
}

template <class T>
void pass_back(const RowsJob& j, const KernelArgs& k, const PoolPixel& p, const Part& part, float* sums, std::int64_t sums_pitch) {
  const auto channels = static_cast<std::size_t>(part.channels);
  const T* dy = k.input<T>(kDy) + p.out_offset(j.grid);
  if (j.params.kind == PoolKind::kAverage) {
    const auto by = static_cast<float>(divisor(j.params, j.grid, p));
    return for_some_cells<T>(j, p, part, nullptr, sums, sums_pitch,
                             [&](const Cells<T>& cells, std::int32_t) { add_share(cells.into, cells.count, channels, by, dy); });
  }
  const T* x = k.input<T>(kX) + p.in_offset(j.grid);
  auto* best = reinterpret_cast<float*>(k.scratch + j.best_at);
  auto* where = reinterpret_cast<std::int32_t*>(k.scratch + j.where_at);
  const bool few = p.cells(j.grid) <= static_cast<std::int64_t>(kCellsAtOnce);
  for_some_cells<T>(j, p, part, x, sums, sums_pitch, [&](const Cells<T>& cells, std::int32_t first) {
    max_where(cells.x, cells.count, first, channels, best, where);
    if (few) add_where(cells.into, cells.count, 0, channels, where, dy);
  });
  if (few) return;
  for_some_cells<T>(j, p, part, x, sums, sums_pitch,
                    [&](const Cells<T>& cells, std::int32_t first) { add_where(cells.into, cells.count, first, channels, where, dy); });
}

template <class T>
void run_rows(const RowsJob& j, const KernelArgs& k, int task) {
  const Window& w = j.params.window;
  Part part;
  part.first_channel = task % j.channel_blocks * j.channels;
  part.channels = std::min(j.channels, j.grid.channels - part.first_channel);
  part.first_row = task / j.channel_blocks % j.row_blocks * j.rows;
  part.last_row = std::min(w.input[0], part.first_row + j.rows);
  part.image = task / (j.channel_blocks * j.row_blocks);
  const std::int64_t pixels = (part.last_row - part.first_row) * j.row_pixels;
  T* dx = k.output<T>(0) + part.image * j.grid.in_strides[0] + part.first_row * j.row_pixels * j.pitch + part.first_channel;
  constexpr bool kDirect = std::is_same_v<T, float>;
  float* sums = nullptr;
  if constexpr (kDirect)
    sums = dx;
  else
    sums = reinterpret_cast<float*>(k.scratch);
  const std::int64_t sums_pitch = kDirect ? j.pitch : part.channels;
  for (std::int64_t i = 0; i < pixels; ++i) std::fill_n(sums + i * sums_pitch, part.channels, 0.0f);
  // Outputs whose windows reach into the rows.
  const std::int64_t s = w.strides[0], before = part.first_row + w.begin[0] - w.extent(0) + 1;
  PoolPixel p;
  p.image = part.image;
  p.channel_begin = part.first_channel;
  p.channel_end = part.first_channel + part.channels;
  p.at[0] = before > 0 ? (before + s - 1) / s : 0;
  const std::int64_t end = std::min(w.output[0], (part.last_row - 1 + w.begin[0]) / s + 1);
  for_each_pixel(j.grid, p, end, [&](const PoolPixel& at) { pass_back<T>(j, k, at, part, sums, sums_pitch); });
  if constexpr (!kDirect) {
    for (std::int64_t i = 0; i < pixels; ++i) narrow_row(sums + i * sums_pitch, dx + i * j.pitch, part.channels);
  }
}

template <class T>
Kernel rows_kernel(const PoolParams& params, const TensorDesc& dx, const TensorDesc& dy) {
  RowsJob j{params, PoolGrid(params.window, dx, dy)};
  const Window& w = params.window;
  j.pitch = dx.channel_pitch;
  j.row_pixels = elements(w.input) / std::max<std::int64_t>(1, w.input[0]);
  const std::int64_t row = std::max<std::int64_t>(1, j.row_pixels * j.grid.channels);
  j.rows = std::clamp<std::int64_t>(std::max(kTaskReads / row, w.extent(0)), 1, std::max<std::int64_t>(1, w.input[0]));
  j.row_blocks = (w.input[0] + j.rows - 1) / j.rows;
  j.channels = j.row_blocks == 1 ? std::min(j.grid.channels, kChannelBlock) : j.grid.channels;
  j.channel_blocks = (j.grid.channels + j.channels - 1) / std::max<std::int64_t>(1, j.channels);
  j.best_at = std::is_same_v<T, float> ? 0 : whole_lines(j.rows * j.row_pixels * j.channels * 4);
  j.where_at = j.best_at + whole_lines(j.channels * 4);
  const auto tasks = static_cast<int>(dx.shape[0] * j.row_blocks * j.channel_blocks);
  const std::size_t scratch = j.where_at + whole_lines(j.channels * 4);
  Kernel kernel = Kernel::single("hwy:pool_grad", tasks, [j = std::move(j)](const KernelArgs& k, int task) { run_rows<T>(j, k, task); });
  kernel.scratch_bytes = scratch;
  return kernel;
}

// ---- plain kernel: one channel of one image a task

struct PlainJob {
  PoolParams params;
  PoolGrid grid;  // X's strides, dY's
  TensorDesc x, dy, dx;
  std::vector<std::int64_t> dx_strides;
};

double power(double v, double p) { return p == 0 ? 1 : std::pow(v, p); }

// Adds one window's part to the sums of the channel's cells, row-major.
void add_window(const PlainJob& j, const KernelArgs& k, const PoolPixel& p, double* sums) {
  const PoolGrid& g = j.grid;
  const double dy = load_float(k.in[kDy], j.dy.dtype, p.out_offset(g));
  const std::int64_t image = p.in_offset(g);
  const auto value = [&](std::int64_t offset) { return load_float(k.in[kX], j.x.dtype, image + offset); };
  const auto flat = [&](const auto& index) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < g.window.rank(); ++d) at = at * g.window.input[d] + index[d];
    return at;
  };
  if (j.params.kind == PoolKind::kAverage) {
    const double share = dy / divisor(j.params, g, p);
    return p.for_each_cell(g, [&](std::int64_t, const auto& index) { sums[flat(index)] += share; });
  }
  if (j.params.kind == PoolKind::kMax) {
    double best = 0;
    std::int64_t at = -1;
    p.for_each_cell(g, [&](std::int64_t offset, const auto& index) {
      const double v = value(offset);
      if (at >= 0 && !(v > best) && !(std::isnan(v) && !std::isnan(best))) return;
      best = v;
      at = flat(index);
    });
    if (at >= 0) sums[at] += dy;
    return;
  }
  // y = (sum |x|^p)^(1/p): dy/dx = sign(x) (|x| / y)^(p - 1), 0 where all is 0.
  const auto exponent = static_cast<double>(j.params.p);
  double sum = 0;
  p.for_each_cell(g, [&](std::int64_t offset, const auto&) { sum += std::pow(std::abs(value(offset)), exponent); });
  const double y = std::pow(sum, 1 / exponent);
  if (y == 0) return;
  p.for_each_cell(g, [&](std::int64_t offset, const auto& index) {
    const double v = value(offset);
    if (v != 0) sums[flat(index)] += std::copysign(dy * power(std::abs(v) / y, exponent - 1), v < 0 ? -dy : dy);
  });
}

Kernel plain_kernel(PlainJob job) {
  const std::int64_t cells = elements(job.params.window.input), channels = job.dx.shape[1];
  const auto tasks = static_cast<int>(job.dx.shape[0] * channels);
  Kernel kernel = Kernel::single("plain:pool_grad", tasks, [j = std::move(job), cells, channels](const KernelArgs& k, int task) {
    auto* sums = reinterpret_cast<double*>(k.scratch);
    std::fill_n(sums, cells, 0.0);
    PoolPixel p;
    p.image = task / channels;
    p.channel_begin = task % channels;
    p.channel_end = p.channel_begin + 1;
    for_each_pixel(j.grid, p, j.params.window.output[0], [&](const PoolPixel& at) { add_window(j, k, at, sums); });
    std::int64_t to = p.image * j.dx_strides[0] + p.channel_begin * j.dx_strides[1];
    for (std::int64_t i = 0; i < cells; ++i) {
      std::int64_t rest = i, at = to;
      for (std::size_t d = j.params.window.rank(); d-- > 0; rest /= j.params.window.input[d])
        at += rest % j.params.window.input[d] * j.dx_strides[d + 2];
      store_float(k.out[0], j.dx.dtype, at, sums[i]);
    }
  });
  kernel.scratch_bytes = static_cast<std::size_t>(cells) * sizeof(double);
  return kernel;
}

Kernel cpu(CpuContext& c) {
  const auto& params = c.params<PoolParams>();
  const TensorDesc &dy = c.in[kDy], &dx = c.out[0], &x = c.has_input(kX) ? c.in[kX] : dx;
  const bool last = dy.layout == Layout::kChannelsLast && dx.layout == Layout::kChannelsLast && dx.strides() == x.strides();
  if (last && params.kind != PoolKind::kLp && dy.dtype == dx.dtype && x.dtype == dx.dtype && dx.size() > 0 && dy.size() > 0) {
    if (dx.dtype == DType::kF32) return rows_kernel<float>(params, dx, dy);
    if (dx.dtype == DType::kBF16) return rows_kernel<BFloat16>(params, dx, dy);
  }
  return plain_kernel({params, PoolGrid(params.window, x, dy), x, dy, dx, dx.strides()});
}

constexpr OpDef gradient_op(std::string_view name, void (*shapes)(InferContext&), std::int16_t inputs) {
  return {.name = name,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .infer = shapes,
          .cpu = cpu,
          .data_inputs = 3,
          .layout = LayoutRule::kChannelsLast,
          .bf16 = Bf16Rule::kStore};
}

}  // namespace

std::span<const OpDef> pool_gradient_ops() {
  static const OpDef ops[] = {gradient_op("MaxPoolGrad", infer<PoolKind::kMax>, 2), gradient_op("AveragePoolGrad", infer<PoolKind::kAverage>, 1),
                              gradient_op("LpPoolGrad", infer<PoolKind::kLp>, 2)};
  return ops;
}

}  // namespace tandem
