#include "runtime/ops/conv_fast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/cpu/activation_rows.h"
#include "runtime/ops/packed_operand.h"

namespace tandem {
namespace {

constexpr std::size_t kWeights = 1, kBias = 2, kResidual = 3;
// Where the rows of A come from.
enum class Source : std::uint8_t {
  kDirect,  // pixels of X one after the other
  kRuns,    // pointers to whole rows of the window in X (neighbouring pixels lie one behind the other), copies at the image's edges
  kTable,   // pointers to pixels of X, or to zeros outside
  kCopy,    // rows gathered in scratch: few channels, bf16, ReLU on the way in
};

struct Job : Window3 {
  ConvParams conv;
  bool mirrored;
  std::int64_t group_channels, group_outputs, taps, depth;
  std::int64_t x_pitch, y_pitch, residual_pitch = 0, in_pixels, out_pixels;
  DType type;
  bool bias, residual;
  ProductPlan product;
  Source source;
  PixelCut cut;
  Sight sight;
  PackedOperand weights;
  std::int64_t row_pitch;                               // of gathered rows
  std::size_t zero_at = 0, edges_at = 0, tiles_at = 0;  // in scratch, after the table
  // Floats of one piece of a row of A, and pieces.
  std::int64_t piece() const { return source == Source::kRuns ? kernel[2] * group_channels : group_channels; }
  std::int64_t pieces() const { return depth / piece(); }
  std::size_t group_bytes() const { return product.packed_bytes(group_outputs); }
};

// For every tap and pixel [first, first + count): the pixel of X under it, or -1. Calls put(tap, index, pixel).
template <class Put>
void visit_taps(const Job& j, std::int64_t first, std::int64_t count, Put&& put) {
  for (std::int64_t t = 0; t < j.taps; ++t) {
    const std::int64_t tx = t % j.kernel[2], ty = t / j.kernel[2] % j.kernel[1], tz = t / j.kernel[2] / j.kernel[1];
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t p = first + i, x = p % j.out[2], row = p / j.out[2], run = std::min(count - i, j.out[2] - x);
      const std::int64_t y = row % j.out[1] * j.strides[1] - j.begin[1] + ty * j.dilations[1];
      const std::int64_t z = row / j.out[1] * j.strides[0] - j.begin[0] + tz * j.dilations[0];
      const bool inside = y >= 0 && y < j.in[1] && z >= 0 && z < j.in[0];
      std::int64_t cell = x * j.strides[2] - j.begin[2] + tx * j.dilations[2];
      const std::int64_t line = (z * j.in[1] + y) * j.in[2];
      for (const std::int64_t end = i + run; i < end; ++i, cell += j.strides[2]) {
        put(t, i, inside && cell >= 0 && cell < j.in[2] ? line + cell : -1);
      }
    }
  }
}

// Rows [pixel][tap][channel] in scratch.
void gather(const Job& j, const void* image, std::int64_t channel, std::int64_t first, std::int64_t count, float* rows) {
  const std::int64_t n = j.group_channels;
  visit_taps(j, first, count, [&](std::int64_t tap, std::int64_t i, std::int64_t pixel) {
    float* to = rows + i * j.row_pitch + tap * n;
    if (pixel < 0) return static_cast<void>(std::fill_n(to, n, 0.0f));
    const std::int64_t at = pixel * j.x_pitch + channel;
    if (j.type == DType::kBF16) return widen_row(static_cast<const BFloat16*>(image) + at, to, n, j.conv.pre_relu);
    const float* from = static_cast<const float*>(image) + at;
    if (j.conv.pre_relu) return relu_row(from, to, n);
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float));
  });
}

// A pointer to `piece` floats for every row of the window and pixel: in X, to zeros, or to a copy in `edges` where the image ends inside.
void point_runs(const Job& j, const float* image, std::int64_t first, std::int64_t count, const float** table, const float* zeros, float* edges) {
  const std::int64_t n = j.group_channels, width = j.kernel[2];
  for (std::int64_t s = 0; s < j.pieces(); ++s) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t p = first + i, row = p / j.out[2];
      const std::int64_t y = row % j.out[1] * j.strides[1] - j.begin[1] + s % j.kernel[1] * j.dilations[1];
      const std::int64_t z = row / j.out[1] * j.strides[0] - j.begin[0] + s / j.kernel[1] * j.dilations[0];
      const std::int64_t x = p % j.out[2] * j.strides[2] - j.begin[2];
      const float*& to = table[s * count + i];
      const std::int64_t from = std::clamp<std::int64_t>(x, 0, j.in[2]), end = std::clamp<std::int64_t>(x + width, 0, j.in[2]);
      if (y < 0 || y >= j.in[1] || z < 0 || z >= j.in[0] || from == end) {
        to = zeros;
        continue;
      }
      const float* line = image + (z * j.in[1] + y) * j.in[2] * n;
      if (end - from == width) {
        to = line + x * n;
        continue;
      }
      std::fill_n(edges, width * n, 0.0f);
      std::copy(line + from * n, line + end * n, edges + (from - x) * n);
      to = edges;
      edges += width * n;
    }
  }
}

// Copies that a block may need for one row of the window.
std::int64_t edge_pixels(const Job& j) {
  std::int64_t of_row = 0;
  for (std::int64_t x = 0; x < j.out[2]; ++x) {
    const std::int64_t first = x * j.strides[2] - j.begin[2];
    of_row += first < 0 || first + j.kernel[2] > j.in[2];
  }
  return std::min(j.cut.block, (j.cut.block / std::max<std::int64_t>(1, j.out[2]) + 2) * of_row);
}

void run_block(const Job& j, const KernelArgs& k, const PixelCut::Part& part, std::int64_t group, std::int64_t first, std::int64_t count) {
  const std::size_t unit = size_of(j.type);
  const auto* image = static_cast<const std::byte*>(k.in[0]) + static_cast<std::size_t>(part.image * j.in_pixels * j.x_pitch) * unit;
  const std::int64_t channel = group * j.group_channels, output = group * j.group_outputs, pixel = part.image * j.out_pixels + first;
  GemmBlock g;
  g.rows = count;
  g.segment_depth = j.depth;
  if (j.source == Source::kDirect) {
    g.a = reinterpret_cast<const float*>(image) + first * j.x_pitch + channel;
    g.a_stride = j.x_pitch;
  } else if (j.source == Source::kCopy) {
    float* rows = reinterpret_cast<float*>(k.scratch);
    gather(j, image, channel, first, count, rows);
    g.a = rows;
    g.a_stride = j.row_pitch;
  } else {
    auto* table = reinterpret_cast<const float**>(k.scratch);
    const auto* zeros = reinterpret_cast<const float*>(k.scratch + j.zero_at);
    const float* base = reinterpret_cast<const float*>(image) + channel;
    if (j.source == Source::kRuns) {
      point_runs(j, base, first, count, table, zeros, reinterpret_cast<float*>(k.scratch + j.edges_at));
    } else {
      visit_taps(j, first, count,
                 [&](std::int64_t tap, std::int64_t i, std::int64_t at) { table[tap * count + i] = at < 0 ? zeros : base + at * j.x_pitch; });
    }
    g.table = table;
    g.segments = j.pieces();
    g.segment_depth = j.piece();
  }
  g.outputs = j.group_outputs;
  g.first_panel = part.first_panel;
  g.last_panel = part.last_panel;
  if (j.bias) g.bias = k.input<float>(kBias) + output;
  g.type = j.type;
  g.c = static_cast<std::byte*>(k.out[0]) + static_cast<std::size_t>(pixel * j.y_pitch + output) * unit;
  g.c_stride = j.y_pitch;
  if (j.residual) {
    g.residual = static_cast<const std::byte*>(k.in[kResidual]) + static_cast<std::size_t>(pixel * j.residual_pitch + output) * unit;
    g.residual_stride = j.residual_pitch;
  }
  g.activation = j.conv.activation;
  if (j.source != Source::kCopy && group + 1 == j.conv.group)
    fetch_next(j.sight, image, j.x_pitch * static_cast<std::int64_t>(unit), first, first + count, g);
  const auto* packed = j.weights.data(k);
  j.product.run(g, packed + static_cast<std::size_t>(group) * j.group_bytes(), k.scratch + j.tiles_at);
}

void run_task(const Job& j, const KernelArgs& k, int task) {
  const PixelCut::Part part = j.cut.part(task);
  if (j.zero_at) std::fill_n(reinterpret_cast<float*>(k.scratch + j.zero_at), j.piece(), 0.0f);
  for (std::int64_t first = part.first; first < part.last; first += j.cut.block) {
    const std::int64_t count = std::min(j.cut.block, part.last - first);
    for (std::int64_t group = 0; group < j.conv.group; ++group) run_block(j, k, part, group, first, count);
  }
}

void pack_group(const Job& j, const float* w, std::int64_t group, std::byte* to) {
  if (j.mirrored) {
    const float* from = w + group * j.group_channels * j.group_outputs * j.taps;
    return j.product.pack(j.group_outputs, to + static_cast<std::size_t>(group) * j.group_bytes(), [&](std::int64_t k, std::int64_t o) {
      return from[(k % j.group_channels * j.group_outputs + o) * j.taps + j.taps - 1 - k / j.group_channels];
    });
  }
  const float* from = w + group * j.group_outputs * j.depth;
  j.product.pack(j.group_outputs, to + static_cast<std::size_t>(group) * j.group_bytes(),
                 [&](std::int64_t k, std::int64_t o) { return from[o * j.depth + k % j.group_channels * j.taps + k / j.group_channels]; });
}

void take_geometry(Job& j, const CpuContext& c) {
  const Window& w = j.conv.window;
  const Shape &x = c.in[0].shape, &y = c.out[0].shape;
  static_cast<Window3&>(j) = three_dimensions(w);
  j.group_channels = x[1] / j.conv.group;
  j.group_outputs = y[1] / j.conv.group;
  j.taps = w.taps();
  j.depth = j.taps * j.group_channels;
  j.x_pitch = c.in[0].channel_pitch;
  j.y_pitch = c.out[0].channel_pitch;
  j.in_pixels = elements(spatial(x));
  j.out_pixels = elements(spatial(y));
  j.sight = sight_of(w);
  j.type = c.out[0].dtype;
  j.bias = c.has_input(kBias);
  j.residual = c.has_input(kResidual);
  if (j.residual) j.residual_pitch = c.in[kResidual].channel_pitch;
}

void choose_source(Job& j, Kernel& kernel) {
  const Window& w = j.conv.window;
  const auto ones = [](const std::vector<std::int64_t>& v) { return std::all_of(v.begin(), v.end(), [](std::int64_t x) { return x == 1; }); };
  constexpr std::int64_t kFewChannels = 12;
  const bool dense_rows = j.conv.group == 1 && j.x_pitch == j.group_channels && j.dilations[2] == 1 && j.kernel[2] > 1;
  if (j.product.amx || j.type == DType::kBF16 || j.conv.pre_relu)
    j.source = Source::kCopy;
  else if (dense_rows)
    j.source = Source::kRuns;
  else if (j.taps > 1 && j.group_channels < kFewChannels)
    j.source = Source::kCopy;
  else
    j.source = j.taps == 1 && ones(w.strides) && j.in_pixels == j.out_pixels ? Source::kDirect : Source::kTable;
  j.row_pitch = padded_row(j.depth);
  if (j.source == Source::kCopy) {
    j.tiles_at = whole_lines(j.cut.block * j.row_pitch * 4);
    kernel.scratch_bytes = j.tiles_at + j.product.scratch_bytes();
  } else if (j.source != Source::kDirect) {
    j.zero_at = whole_lines(j.cut.block * j.pieces() * static_cast<std::int64_t>(sizeof(float*)));
    j.edges_at = j.zero_at + whole_lines(j.piece() * 4);
    kernel.scratch_bytes = j.edges_at + (j.source == Source::kRuns ? whole_lines(edge_pixels(j) * j.pieces() * j.piece() * 4) : 0);
  }
}

Kernel product_conv(CpuContext& c, const ConvParams& p, bool mirrored) {
  Job j;
  j.conv = p;
  j.mirrored = mirrored;
  take_geometry(j, c);
  j.product = ProductPlan::make(c, j.type, j.depth, kLargestBlock);
  j.cut = cut_pixels(j.product, c.out[0].shape[0], j.out_pixels, j.group_outputs, j.product.panel_width());
  Kernel kernel;
  choose_source(j, kernel);
  const char* sources[] = {"direct", "runs", "table", "copy"};
  kernel.implementation = fmt::format("{}:{}", j.product.name(), sources[static_cast<int>(j.source)]);
  j.weights = PackedOperand(c, kernel, kWeights, fmt::format("{}:t{}:g{}:m{}", j.product.key(), j.taps, p.group, mirrored),
                            j.group_bytes() * static_cast<std::size_t>(p.group), p.group,
                            [j](const void* w, std::int64_t group, std::byte* to) { pack_group(j, static_cast<const float*>(w), group, to); });
  kernel.stages.push_back({j.cut.tasks(), [j](const KernelArgs& k, int task) { run_task(j, k, task); }});
  if (may_take_residual(c, kResidual)) kernel.in_place = 1u << kResidual;
  return kernel;
}

}  // namespace

std::optional<Kernel> fast_conv(CpuContext& c, const ConvParams& p, bool mirrored) {
  const DType type = c.out[0].dtype;
  if (!is_hot_activation(c.in[0], type) || !is_hot_activation(c.out[0], type) || p.window.rank() > 3) return std::nullopt;
  if (c.has_input(kResidual) && !is_hot_activation(c.in[kResidual], type)) return std::nullopt;
  if (c.in[kWeights].dtype != DType::kF32 || (c.has_input(kBias) && c.in[kBias].dtype != DType::kF32)) return std::nullopt;
  const bool depthwise = p.group > 1 && p.group == c.in[0].shape[1] && p.group == c.out[0].shape[1];
  if (depthwise && p.window.rank() <= 2) return fast_depthwise(c, p, mirrored);
  return product_conv(c, p, mirrored);
}

}  // namespace tandem
