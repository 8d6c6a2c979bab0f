// ConvGradWeight as a matrix product: rows are outputs, columns (tap, channel), and the sum runs over positions (image and output pixel).
//
// A block of positions at a time: dY's part of it transposed to [output][position], panels of columns gathered from X as
// [position][column], and their product added to dW. Tasks cut outputs, columns and, where dW is small, positions.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/cpu/product_rows.h"
#include "runtime/ops/conv_fast.h"
#include "runtime/ops/conv_grad_weight.h"

namespace tandem {
namespace {

constexpr std::size_t kX = 0, kDy = 1;
constexpr std::int64_t kMostPositions = 384;                       // of a block: a panel of columns and a tile's rows stay in L1
constexpr std::int64_t kMostRows = 192;                            // outputs of a task: its transposed dY stays in L2
constexpr std::int64_t kColumnsAtOnce = 64;                        // gathered at a time
constexpr std::int64_t kFewestColumns = 256;                       // of a task, as each transposes its dY anew
constexpr std::int64_t kRowsOnTiles = 384, kColumnsOnTiles = 256;  // tiles are fast beside what it takes to gather for them
constexpr std::int64_t kMostPartFloats = 1 << 20;                  // of all parts' sums together
constexpr std::int64_t kTaskProducts = 1 << 21;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Job : Window3 {
  std::int64_t group, channels, outputs, taps;  // of one group
  std::int64_t x_pitch, dy_pitch, in_pixels, out_pixels, positions;
  DType type;
  ProductPlan product;
  std::int64_t depth, blocks;                                    // positions of a block, blocks
  std::int64_t row_blocks, column_blocks, panels, group_panels;  // of a group; panels gathered at once
  GradParts sums;                                                // parts of blocks of positions
  std::int64_t a_stride;
  std::size_t panels_at, packed_at, table_at, tiles_at;  // in scratch
  std::int64_t columns() const { return taps * channels; }
  std::int64_t width() const { return product.panel_width(); }
};

struct Task {
  std::int64_t group, row, rows, first_panel, last_panel, first_position, last_position;
  float* dw;                          // of the group's first output
  std::int64_t first = 0, count = 0;  // positions of the block
  std::int64_t tabled = -1;           // tap that the table of pixels is for
};

Task task_of(const Job& j, const KernelArgs& k, int task) {
  const std::int64_t columns = task % j.column_blocks, rows = task / j.column_blocks % j.row_blocks;
  Task t;
  t.group = task / (j.column_blocks * j.row_blocks) % j.group;
  const std::int64_t part = task / (j.column_blocks * j.row_blocks * j.group);
  t.first_position = j.blocks * part / j.sums.parts * j.depth;
  t.last_position = std::min(j.positions, j.blocks * (part + 1) / j.sums.parts * j.depth);
  t.dw = j.sums.sums(k, part) + t.group * j.outputs * j.columns();
  t.row = j.outputs * rows / j.row_blocks;
  t.rows = j.outputs * (rows + 1) / j.row_blocks - t.row;
  t.first_panel = j.panels * columns / j.column_blocks;
  t.last_panel = j.panels * (columns + 1) / j.column_blocks;
  return t;
}

// Pointers to the pixels of X, or null, that a tap sees from positions [first, first + count).
void point_at_pixels(const Job& j, const std::byte* x, std::int64_t tap, std::int64_t first, std::int64_t count, const void** table) {
  const std::size_t unit = size_of(j.type);
  const std::int64_t tx = tap % j.kernel[2], ty = tap / j.kernel[2] % j.kernel[1], tz = tap / j.kernel[2] / j.kernel[1];
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t image = (first + i) / j.out_pixels, p = (first + i) % j.out_pixels, at = p % j.out[2], row = p / j.out[2];
    const std::int64_t y = row % j.out[1] * j.strides[1] - j.begin[1] + ty * j.dilations[1];
    const std::int64_t z = row / j.out[1] * j.strides[0] - j.begin[0] + tz * j.dilations[0];
    const bool inside = y >= 0 && y < j.in[1] && z >= 0 && z < j.in[0];
    const std::int64_t line = image * j.in_pixels + (z * j.in[1] + y) * j.in[2];
    std::int64_t cell = at * j.strides[2] - j.begin[2] + tx * j.dilations[2];
    for (const std::int64_t end = i + std::min(count - i, j.out[2] - at); i < end; ++i, cell += j.strides[2]) {
      table[i] = inside && cell >= 0 && cell < j.in[2] ? x + static_cast<std::size_t>((line + cell) * j.x_pitch) * unit : nullptr;
    }
  }
}

// Panels [first_panel, last_panel) of X as [panel][position][column], `depth` positions each.
void gather_panels(const Job& j, const KernelArgs& k, Task& t, std::int64_t first_panel, std::int64_t last_panel, std::int64_t depth, float* panels) {
  auto* table = reinterpret_cast<const void**>(k.scratch + j.table_at);
  const auto* x = static_cast<const std::byte*>(k.in[kX]);
  const std::int64_t width = j.width(), begin = first_panel * width, end = std::min(j.columns(), last_panel * width);
  for (std::int64_t column = begin; column < end;) {
    const std::int64_t tap = column / j.channels, stop = std::min(end, (tap + 1) * j.channels);
    if (tap != t.tabled) point_at_pixels(j, x, tap, t.first, t.count, table);
    t.tabled = tap;
    gather_rows(j.type, table, t.group * j.channels + column % j.channels, t.count, stop - column, column % width,
                panels + (column / width - first_panel) * depth * width, width, depth * width);
    column = stop;
  }
  if (const std::int64_t lane = end % width; lane != 0) {  // columns past the last
    float* to = panels + (end / width - first_panel) * depth * width;
    for (std::int64_t i = 0; i < t.count; ++i) std::fill(to + i * width + lane, to + (i + 1) * width, 0.0f);
  }
}

// Zeros behind the last position of a short block: tiles always run over the whole depth.
void fill_up(const Job& j, const Task& t, std::int64_t panels, float* a, float* gathered) {
  for (std::int64_t r = 0; r < t.rows; ++r) std::fill(a + r * j.a_stride + t.count, a + r * j.a_stride + j.depth, 0.0f);
  for (std::int64_t p = 0; p < panels; ++p) {
    float* panel = gathered + p * j.depth * j.width();
    std::fill(panel + t.count * j.width(), panel + j.depth * j.width(), 0.0f);
  }
}

void run_panels(const Job& j, const KernelArgs& k, Task& t, std::int64_t panel) {
  const std::int64_t last_panel = std::min(t.last_panel, panel + j.group_panels), depth = j.product.amx ? j.depth : t.count, width = j.width();
  auto* a = reinterpret_cast<float*>(k.scratch);
  auto* gathered = reinterpret_cast<float*>(k.scratch + j.panels_at);
  gather_panels(j, k, t, panel, last_panel, depth, gathered);
  GemmBlock g;
  g.rows = t.rows;
  g.segment_depth = depth;
  g.a = a;
  g.a_stride = j.a_stride;
  g.outputs = std::min(j.columns(), last_panel * width) - panel * width;
  g.last_panel = last_panel - panel;
  float* dw = t.dw + t.row * j.columns() + panel * width;
  g.c = dw;
  g.c_stride = j.columns();
  if (t.first != t.first_position) {
    g.residual = dw;
    g.residual_stride = j.columns();
  }
  if (!j.product.amx) return j.product.run(g, gathered, nullptr);
  if (t.count < depth) fill_up(j, t, g.last_panel, a, gathered);
  std::byte* packed = k.scratch + j.packed_at;
  for (std::int64_t p = 0; p < g.last_panel; ++p) {
    pack_tiles(gathered + p * depth * width, depth, j.product.parts,
               reinterpret_cast<BFloat16*>(packed) + p * amx_panel_elements(depth, j.product.parts));
  }
  j.product.run(g, packed, k.scratch + j.tiles_at);
}

void run_task(const Job& j, const KernelArgs& k, int task) {
  Task t = task_of(j, k, task);
  const auto* dy = static_cast<const std::byte*>(k.in[kDy]);
  for (t.first = t.first_position; t.first < t.last_position; t.first += j.depth) {
    t.count = std::min(j.depth, t.last_position - t.first);
    t.tabled = -1;
    const std::int64_t from = t.first * j.dy_pitch + t.group * j.outputs + t.row;
    transpose_rows(j.type, dy + static_cast<std::size_t>(from) * size_of(j.type), j.dy_pitch, t.count, t.rows, reinterpret_cast<float*>(k.scratch),
                   j.a_stride);
    for (std::int64_t p = t.first_panel; p < t.last_panel; p += j.group_panels) run_panels(j, k, t, p);
  }
}

void take_geometry(Job& j, const CpuContext& c, const ConvParams& p) {
  const Window& w = p.window;
  static_cast<Window3&>(j) = three_dimensions(w);
  j.group = p.group;
  j.channels = c.in[kX].shape[1] / p.group;
  j.outputs = c.in[kDy].shape[1] / p.group;
  j.taps = w.taps();
  j.x_pitch = c.in[kX].channel_pitch;
  j.dy_pitch = c.in[kDy].channel_pitch;
  j.in_pixels = elements(w.input);
  j.out_pixels = elements(w.output);
  j.positions = c.in[kX].shape[0] * j.out_pixels;
  j.type = c.in[kX].dtype;
}

void cut(Job& j) {
  j.row_blocks = divide_up(j.outputs, j.product.amx ? kRowsOnTiles : kMostRows);
  j.panels = divide_up(j.columns(), j.width());
  j.group_panels = std::min(j.panels, divide_up(j.product.amx ? kColumnsOnTiles : kColumnsAtOnce, j.width()));
  const double work = static_cast<double>(j.outputs) * static_cast<double>(j.columns()) * static_cast<double>(j.positions * j.group);
  const auto worth = static_cast<std::int64_t>(std::min(work / static_cast<double>(kTaskProducts), static_cast<double>(kMostGradParts)));
  std::int64_t have = j.group * j.row_blocks;
  j.sums.size = j.group * j.outputs * j.columns();
  j.sums.parts = std::clamp<std::int64_t>(std::min({worth / have, j.blocks, kMostPartFloats / j.sums.size}), 1, kMostGradParts);
  have *= j.sums.parts;
  j.column_blocks = std::clamp<std::int64_t>(std::min(worth / have, j.columns() / kFewestColumns), 1, j.panels);
}

}  // namespace

std::optional<Kernel> product_grad_weight(CpuContext& c, const ConvParams& p) {
  const TensorDesc &x = c.in[kX], &dy = c.in[kDy], &dw = c.out[0];
  if (p.window.rank() > 3 || !is_hot_activation(x, x.dtype) || !is_hot_activation(dy, x.dtype)) return std::nullopt;
  if (dw.dtype != DType::kF32 || dw.layout != Layout::kChannelsLast || dw.channel_pitch != dw.shape[1]) return std::nullopt;
  if (x.size() == 0 || dy.size() == 0) return std::nullopt;
  Job j{};
  take_geometry(j, c, p);
  j.blocks = divide_up(j.positions, kMostPositions);
  j.depth = divide_up(j.positions, j.blocks);
  j.product = ProductPlan::make(c, j.type, j.depth, 0);
  cut(j);
  j.product = ProductPlan::make(c, j.type, j.depth, divide_up(j.outputs, j.row_blocks));
  j.a_stride = (divide_up(j.depth, 16) | 1) * 16;  // an odd number of cache lines: rows spread over all sets
  Kernel kernel;
  kernel.implementation = j.product.name() + ":grad_weight";
  const std::int64_t rows = divide_up(j.outputs, j.row_blocks), columns = j.group_panels * j.width();
  j.panels_at = whole_lines(rows * j.a_stride * 4);
  j.packed_at = j.panels_at + whole_lines(columns * j.depth * 4);
  j.table_at = j.packed_at + (j.product.amx ? j.product.packed_bytes(columns) : 0);
  j.tiles_at = j.table_at + whole_lines(j.depth * static_cast<std::int64_t>(sizeof(void*)));
  kernel.scratch_bytes = j.tiles_at + j.product.scratch_bytes();
  j.sums.reserve(kernel);
  const auto tasks = static_cast<int>(j.group * j.row_blocks * j.column_blocks * j.sums.parts);
  kernel.stages.push_back({tasks, [j](const KernelArgs& k, int task) { run_task(j, k, task); }});
  j.sums.add_stage(kernel);
  return kernel;
}

}  // namespace tandem
