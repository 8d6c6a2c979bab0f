// ConvTranspose on the hot kernels. With stride 1 it is the convolution with mirrored taps. Else outputs whose position plus pad leaves the same
// remainder by the stride see the same taps of the kernel: each such phase is a convolution of stride 1 with a part of the weights, a matrix product
// over the phase's pixels.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/cpu/activation_rows.h"
#include "runtime/ops/conv_fast.h"
#include "runtime/ops/packed_operand.h"

namespace tandem {
namespace {

constexpr std::size_t kWeights = 1, kBias = 2;
constexpr std::int64_t kMostPhases = 64;
constexpr std::int64_t kFewestOutputs = 4;  // of a group: thinner products waste the panel

struct Tap {
  std::int64_t index;      // in the kernel
  std::int64_t offset[3];  // input cell of the phase's first output
};

struct Phase {
  std::int64_t first[3], count[3];  // output cells first + i * stride, i < count
  std::vector<Tap> taps;
  ProductPlan product;
  PixelCut cut;
  std::size_t packed_at = 0;  // of group 0
  std::size_t zeros_at = 0, sums_at = 0, tiles_at = 0;
  std::int64_t row_pitch = 0;
  bool copies = false;  // rows of A are gathered, not pointed at
};

struct Job : Window3 {
  std::int64_t group, channels, outputs, all_taps;  // of one group
  std::int64_t x_pitch, y_pitch, in_pixels, out_pixels;
  DType type;
  bool bias;
  bool dense;  // one phase: its pixels lie one behind the other in Y
  std::vector<Phase> phases;
  PackedOperand weights;
  std::size_t packed_bytes = 0;
};

// Calls put(tap, pixel of the block, pixel of X or -1).
template <class Put>
void visit(const Job& j, const Phase& f, std::int64_t first, std::int64_t count, Put&& put) {
  for (std::size_t t = 0; t < f.taps.size(); ++t) {
    const Tap& tap = f.taps[t];
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t p = first + i;
      const std::int64_t x = p % f.count[2] + tap.offset[2], y = p / f.count[2] % f.count[1] + tap.offset[1],
                         z = p / f.count[2] / f.count[1] + tap.offset[0];
      const bool inside = x >= 0 && x < j.in[2] && y >= 0 && y < j.in[1] && z >= 0 && z < j.in[0];
      put(static_cast<std::int64_t>(t), i, inside ? (z * j.in[1] + y) * j.in[2] + x : -1);
    }
  }
}

void point_at_rows(const Job& j, const Phase& f, const KernelArgs& k, const std::byte* image, std::int64_t channel, std::int64_t first,
                   GemmBlock& g) {
  auto* table = reinterpret_cast<const float**>(k.scratch);
  const auto* zeros = reinterpret_cast<const float*>(k.scratch + f.zeros_at);
  const float* base = reinterpret_cast<const float*>(image) + channel;
  visit(j, f, first, g.rows,
        [&](std::int64_t tap, std::int64_t i, std::int64_t at) { table[tap * g.rows + i] = at < 0 ? zeros : base + at * j.x_pitch; });
  g.table = table;
  g.segments = static_cast<std::int64_t>(f.taps.size());
  g.segment_depth = j.channels;
}

void copy_rows(const Job& j, const Phase& f, const KernelArgs& k, const std::byte* image, std::int64_t channel, std::int64_t first, GemmBlock& g) {
  float* rows = reinterpret_cast<float*>(k.scratch);
  visit(j, f, first, g.rows, [&](std::int64_t tap, std::int64_t i, std::int64_t at) {
    float* to = rows + i * f.row_pitch + tap * j.channels;
    const std::int64_t from = at * j.x_pitch + channel;
    if (at < 0)
      std::fill_n(to, j.channels, 0.0f);
    else if (j.type == DType::kBF16)
      widen_row(reinterpret_cast<const BFloat16*>(image) + from, to, j.channels, false);
    else
      std::copy_n(reinterpret_cast<const float*>(image) + from, j.channels, to);
  });
  g.a = rows;
  g.a_stride = f.row_pitch;
  g.segment_depth = f.product.depth;
}

// Where output pixel p of the phase lies in the image.
std::int64_t place(const Job& j, const Phase& f, std::int64_t p) {
  const std::int64_t x = f.first[2] + p % f.count[2] * j.strides[2], y = f.first[1] + p / f.count[2] % f.count[1] * j.strides[1],
                     z = f.first[0] + p / f.count[2] / f.count[1] * j.strides[0];
  return (z * j.out[1] + y) * j.out[2] + x;
}

void run_block(const Job& j, const Phase& f, const KernelArgs& k, const PixelCut::Part& part, std::int64_t group, std::int64_t first,
               std::int64_t count) {
  const std::size_t unit = size_of(j.type);
  const auto* image = static_cast<const std::byte*>(k.in[0]) + static_cast<std::size_t>(part.image * j.in_pixels * j.x_pitch) * unit;
  auto* y = static_cast<std::byte*>(k.out[0]) + static_cast<std::size_t>(part.image * j.out_pixels * j.y_pitch + group * j.outputs) * unit;
  GemmBlock g;
  g.rows = count;
  (f.copies ? copy_rows : point_at_rows)(j, f, k, image, group * j.channels, first, g);
  g.outputs = j.outputs;
  g.first_panel = part.first_panel;
  g.last_panel = part.last_panel;
  if (j.bias) g.bias = k.input<float>(kBias) + group * j.outputs;
  g.type = j.type;
  std::byte* sums = k.scratch + f.sums_at;
  g.c = j.dense ? y + static_cast<std::size_t>(first * j.y_pitch) * unit : sums;
  g.c_stride = j.dense ? j.y_pitch : j.outputs;
  const std::byte* weights = j.weights.data(k);
  f.product.run(g, weights + f.packed_at + static_cast<std::size_t>(group) * f.product.packed_bytes(j.outputs), k.scratch + f.tiles_at);
  if (j.dense) return;
  const std::int64_t from = part.first_panel * f.product.panel_width(), to = std::min(j.outputs, part.last_panel * f.product.panel_width());
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(y + static_cast<std::size_t>(place(j, f, first + i) * j.y_pitch + from) * unit,
                sums + static_cast<std::size_t>(i * j.outputs + from) * unit, static_cast<std::size_t>(to - from) * unit);
  }
}

void run_task(const Job& j, const KernelArgs& k, int task) {
  const Phase* f = j.phases.data();
  for (; task >= f->cut.tasks(); ++f) task -= f->cut.tasks();
  const PixelCut::Part part = f->cut.part(task);
  if (!f->copies) std::fill_n(reinterpret_cast<float*>(k.scratch + f->zeros_at), j.channels, 0.0f);
  for (std::int64_t first = part.first; first < part.last; first += f->cut.block) {
    for (std::int64_t group = 0; group < j.group; ++group) run_block(j, *f, k, part, group, first, std::min(f->cut.block, part.last - first));
  }
}

// The weights of one phase and group; W is [channels, outputs / group, kernel...].
void pack_part(const Job& j, const float* w, std::int64_t part, std::byte* to) {
  const Phase& f = j.phases[static_cast<std::size_t>(part / j.group)];
  const std::int64_t group = part % j.group;
  const float* from = w + group * j.channels * j.outputs * j.all_taps;
  f.product.pack(j.outputs, to + f.packed_at + static_cast<std::size_t>(group) * f.product.packed_bytes(j.outputs),
                 [&](std::int64_t k, std::int64_t o) {
                   const std::int64_t tap = f.taps[static_cast<std::size_t>(k / j.channels)].index;
                   return from[(k % j.channels * j.outputs + o) * j.all_taps + tap];
                 });
}

// The phase of the remainders `rest` by the strides.
Phase make_phase(const Job& j, const std::int64_t rest[3]) {
  Phase f;
  for (std::size_t d = 0; d < 3; ++d) {
    const std::int64_t s = j.strides[d];
    f.first[d] = ((rest[d] - j.begin[d]) % s + s) % s;
    f.count[d] = f.first[d] < j.out[d] ? (j.out[d] - 1 - f.first[d]) / s + 1 : 0;
  }
  for (std::int64_t t = 0; t < j.all_taps; ++t) {
    const std::int64_t at[3] = {t / j.kernel[2] / j.kernel[1], t / j.kernel[2] % j.kernel[1], t % j.kernel[2]};
    Tap tap{t, {}};
    bool seen = true;
    for (std::size_t d = 0; d < 3; ++d) {
      const std::int64_t spread = f.first[d] + j.begin[d] - at[d] * j.dilations[d];
      seen = seen && spread % j.strides[d] == 0;
      tap.offset[d] = spread / j.strides[d];
    }
    if (seen) f.taps.push_back(tap);
  }
  return f;
}

// Kernel and cut of a phase; returns the scratch it needs.
std::size_t prepare(Job& j, Phase& f, const CpuContext& c) {
  const auto taps = static_cast<std::int64_t>(f.taps.size());
  f.product = ProductPlan::make(c, j.type, taps * j.channels, kLargestBlock);
  f.cut = cut_pixels(f.product, c.out[0].shape[0], f.count[0] * f.count[1] * f.count[2], j.outputs, f.product.panel_width());
  f.copies = f.product.amx || j.type == DType::kBF16 || taps == 0;
  f.row_pitch = padded_row(f.product.depth);
  f.packed_at = j.packed_bytes;
  j.packed_bytes += f.product.packed_bytes(j.outputs) * static_cast<std::size_t>(j.group);
  f.zeros_at = whole_lines(f.copies ? f.cut.block * f.row_pitch * 4 : f.cut.block * taps * static_cast<std::int64_t>(sizeof(float*)));
  f.sums_at = f.zeros_at + (f.copies ? 0 : whole_lines(j.channels * 4));
  f.tiles_at = f.sums_at + (j.dense ? 0 : whole_lines(f.cut.block * j.outputs * static_cast<std::int64_t>(size_of(j.type))));
  return f.tiles_at + f.product.scratch_bytes();
}

Job make_job(const CpuContext& c, const ConvParams& p) {
  Job j{};
  const Window& w = p.window;
  static_cast<Window3&>(j) = three_dimensions(w);
  j.group = p.group;
  j.channels = c.in[0].shape[1] / p.group;
  j.outputs = c.out[0].shape[1] / p.group;
  j.all_taps = w.taps();
  j.x_pitch = c.in[0].channel_pitch;
  j.y_pitch = c.out[0].channel_pitch;
  j.in_pixels = elements(w.input);
  j.out_pixels = elements(w.output);
  j.type = c.out[0].dtype;
  j.bias = c.has_input(kBias);
  j.dense = j.strides[0] * j.strides[1] * j.strides[2] == 1;
  std::int64_t rest[3];
  for (rest[0] = 0; rest[0] < j.strides[0]; ++rest[0])
    for (rest[1] = 0; rest[1] < j.strides[1]; ++rest[1])
      for (rest[2] = 0; rest[2] < j.strides[2]; ++rest[2]) j.phases.push_back(make_phase(j, rest));
  return j;
}

bool is_depthwise(const CpuContext& c, const ConvParams& p) {
  return p.group > 1 && p.group == c.in[0].shape[1] && p.group == c.out[0].shape[1] && p.window.rank() <= 2;
}

bool fits(const CpuContext& c, const ConvParams& p) {
  const DType type = c.out[0].dtype;
  if (!is_hot_activation(c.in[0], type) || !is_hot_activation(c.out[0], type) || p.window.rank() > 3) return false;
  if (c.in[kWeights].dtype != DType::kF32 || (c.has_input(kBias) && c.in[kBias].dtype != DType::kF32)) return false;
  std::int64_t phases = 1;
  for (const std::int64_t s : p.window.strides) phases *= std::min(s, kMostPhases + 1);
  return phases <= kMostPhases && (p.group == 1 || c.out[0].shape[1] / p.group >= kFewestOutputs || is_depthwise(c, p));
}

// The convolution of stride 1 that gives the same; nothing where it would need negative pads.
std::optional<ConvParams> mirrored(const ConvParams& p) {
  ConvParams m = p;
  Window& w = m.window;
  for (std::size_t d = 0; d < w.rank(); ++d) {
    w.begin[d] = w.extent(d) - 1 - w.begin[d];
    w.end[d] = w.extent(d) - 1 - w.end[d];
    if (w.strides[d] != 1 || w.begin[d] < 0) return std::nullopt;
  }
  return m;
}

}  // namespace

std::optional<Kernel> fast_conv_transpose(CpuContext& c, const ConvParams& p) {
  if (!fits(c, p)) return std::nullopt;
  if (const auto m = mirrored(p)) return fast_conv(c, *m, true);
  if (is_depthwise(c, p)) return fast_depthwise_transpose(c, p);
  Job j = make_job(c, p);
  Kernel kernel;
  int tasks = 0;
  for (Phase& f : j.phases) {
    kernel.scratch_bytes = std::max(kernel.scratch_bytes, prepare(j, f, c));
    tasks += f.cut.tasks();
  }
  const std::string product = j.phases[0].product.name();
  kernel.implementation = fmt::format("{}:transposed:{}", product, j.phases.size());
  const auto parts = static_cast<std::int64_t>(j.phases.size()) * j.group;
  const auto key =
      fmt::format("{}:transposed:s{}:d{}:g{}", j.phases[0].product.key(), to_string(p.window.strides), to_string(p.window.dilations), p.group);
  j.weights = PackedOperand(c, kernel, kWeights, key, j.packed_bytes, parts,
                            [j](const void* w, std::int64_t part, std::byte* to) { pack_part(j, static_cast<const float*>(w), part, to); });
  kernel.stages.push_back({tasks, [j](const KernelArgs& k, int task) { run_task(j, k, task); }});
  return kernel;
}

}  // namespace tandem
