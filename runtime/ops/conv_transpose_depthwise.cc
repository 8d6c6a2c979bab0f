// ConvTranspose with one channel and one output a group and strides: outputs whose position plus pad leaves the same remainder by the strides
// see the same taps; each such phase is a depthwise convolution of stride 1 with these taps, written to every stride-th pixel.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/cpu/activation_rows.h"
#include "runtime/ops/conv_fast.h"
#include "runtime/ops/packed_operand.h"

namespace tandem {
namespace {

constexpr std::size_t kWeights = 1, kBias = 2;
constexpr std::int64_t kTaskOutputs = 1 << 16;

// The outputs first, first + stride, ... along one dimension, and what they see.
struct PhaseLine {
  std::int64_t first = 0, count = 0;
  std::int64_t taps = 0, last_tap = 0, tap_step = 0;  // kernel indices last_tap, last_tap - tap_step, ... in the order of rising input cells
  std::int64_t begin = 0, dilation = 1;               // input cell of the first output's first tap is -begin
};

struct Phase {
  PhaseLine line[2];
  DepthwiseWindow window;
  std::size_t packed_at;  // floats
};

struct Job {
  std::int64_t in[2], out[2], kernel[2], strides[2], dilations[2], begin[2];
  std::int64_t images, channels, x_pitch, y_pitch, rows, row_tasks;
  DType type;
  bool bias;
  std::vector<Phase> phases;
  std::size_t packed_floats = 0;
  PackedOperand weights;
};

PhaseLine phase_line(const Job& j, int d, std::int64_t rest) {
  const std::int64_t s = j.strides[d];
  PhaseLine l;
  l.first = ((rest - j.begin[d]) % s + s) % s;
  l.count = l.first < j.out[d] ? (j.out[d] - 1 - l.first) / s + 1 : 0;
  std::int64_t first_tap = -1;
  for (std::int64_t t = 0; t < j.kernel[d]; ++t) {
    if ((l.first + j.begin[d] - t * j.dilations[d]) % s != 0) continue;
    if (first_tap < 0) first_tap = t;
    l.last_tap = t;
    ++l.taps;
  }
  if (l.taps == 0) return l;
  l.tap_step = l.taps > 1 ? (l.last_tap - first_tap) / (l.taps - 1) : 1;
  l.dilation = l.tap_step * j.dilations[d] / s;
  l.begin = -(l.first + j.begin[d] - l.last_tap * j.dilations[d]) / s;
  return l;
}

Phase make_phase(Job& j, std::int64_t y, std::int64_t x) {
  Phase f;
  f.line[0] = phase_line(j, 0, y);
  f.line[1] = phase_line(j, 1, x);
  for (int d = 0; d < 2; ++d) {
    f.window.kernel[d] = f.line[d].taps;
    f.window.strides[d] = 1;
    f.window.dilations[d] = std::max<std::int64_t>(1, f.line[d].dilation);
    f.window.begin[d] = f.line[d].begin;
    f.window.in[d] = j.in[d];
    f.window.out[d] = f.line[d].count;
  }
  f.packed_at = j.packed_floats;
  j.packed_floats += static_cast<std::size_t>((depthwise_packed_floats(j.channels, f.window.taps()) + 15) / 16 * 16);
  return f;
}

void pack_phase(const Job& j, const Phase& f, const float* w, bool rounded, float* to) {
  const std::int64_t taps = j.kernel[0] * j.kernel[1], columns = std::max<std::int64_t>(1, f.line[1].taps);
  depthwise_pack(j.channels, f.window.taps(), to + f.packed_at, [&](std::int64_t c, std::int64_t t) {
    const std::int64_t y = f.line[0].last_tap - t / columns * f.line[0].tap_step, x = f.line[1].last_tap - t % columns * f.line[1].tap_step;
    return depthwise_weight(w[c * taps + y * j.kernel[1] + x], rounded);
  });
}

// One row of a phase to `y`, the first pixel of the row of Y.
void run_row(const Job& j, const Phase& f, const KernelArgs& k, DepthwiseBlock& b, std::int64_t row, std::byte* y) {
  const std::int64_t count = f.line[1].count, step = j.strides[1] * j.y_pitch, first = f.line[1].first * j.y_pitch;
  b.window = f.window;
  b.packed = reinterpret_cast<const float*>(j.weights.data(k)) + f.packed_at;
  b.first = row * count;
  b.last = b.first + count;
  const bool direct = j.type == DType::kF32;
  b.y = direct ? reinterpret_cast<float*>(y) + first : reinterpret_cast<float*>(k.scratch);
  b.y_pitch = direct ? step : j.channels;
  depthwise_run(b);
  for (std::int64_t i = 0; !direct && i < count; ++i) narrow_row(b.y + i * j.channels, reinterpret_cast<BFloat16*>(y) + first + i * step, j.channels);
}

// Some rows of one image, every phase of each.
void run_task(const Job& j, const KernelArgs& k, int task) {
  const std::int64_t image = task / j.row_tasks, first = task % j.row_tasks * j.rows, last = std::min(j.out[0], first + j.rows);
  const std::size_t unit = size_of(j.type);
  DepthwiseBlock b;
  b.channels = j.channels;
  b.type = j.type;
  b.x = static_cast<const std::byte*>(k.in[0]) + static_cast<std::size_t>(image * j.in[0] * j.in[1] * j.x_pitch) * unit;
  b.pitch = j.x_pitch;
  if (j.bias) b.bias = k.input<float>(kBias);
  for (std::int64_t row = first; row < last; ++row) {
    std::byte* y = static_cast<std::byte*>(k.out[0]) + static_cast<std::size_t>((image * j.out[0] + row) * j.out[1] * j.y_pitch) * unit;
    for (const Phase& f : j.phases) {
      const std::int64_t at = row - f.line[0].first;
      if (at % j.strides[0] == 0 && at >= 0 && f.line[1].count > 0) run_row(j, f, k, b, at / j.strides[0], y);
    }
  }
}

}  // namespace

Kernel fast_depthwise_transpose(CpuContext& c, const ConvParams& p) {
  Job j{};
  const DepthwiseWindow w = depthwise_window(p.window);
  for (int d = 0; d < 2; ++d) {
    j.in[d] = w.in[d], j.out[d] = w.out[d], j.kernel[d] = w.kernel[d], j.strides[d] = w.strides[d], j.dilations[d] = w.dilations[d];
    j.begin[d] = w.begin[d];
  }
  j.images = c.out[0].shape[0];
  j.channels = c.out[0].shape[1];
  j.x_pitch = c.in[0].channel_pitch;
  j.y_pitch = c.out[0].channel_pitch;
  j.type = c.out[0].dtype;
  j.bias = c.has_input(kBias);
  j.rows = std::clamp<std::int64_t>(kTaskOutputs / std::max<std::int64_t>(1, j.out[1] * j.channels), 1, j.out[0]);
  j.row_tasks = (j.out[0] + j.rows - 1) / j.rows;
  for (std::int64_t y = 0; y < j.strides[0]; ++y)
    for (std::int64_t x = 0; x < j.strides[1]; ++x) j.phases.push_back(make_phase(j, y, x));
  Kernel kernel;
  const bool half = j.type == DType::kBF16;
  kernel.implementation = fmt::format("hwy:depthwise_{}:transposed:{}", half ? "bf16" : "f32", j.phases.size());
  if (half) kernel.scratch_bytes = whole_lines(((j.out[1] - 1) / j.strides[1] + 1) * j.channels * 4);
  const auto key =
      fmt::format("depthwise{}:r{}:transposed:s{}:d{}", depthwise_lanes(), half, to_string(p.window.strides), to_string(p.window.dilations));
  j.weights = PackedOperand(c, kernel, kWeights, key, j.packed_floats * sizeof(float), 1, [j, half](const void* values, std::int64_t, std::byte* to) {
    for (const Phase& f : j.phases) pack_phase(j, f, static_cast<const float*>(values), half, reinterpret_cast<float*>(to));
  });
  kernel.stages.push_back({static_cast<int>(j.images * j.row_tasks), [j](const KernelArgs& k, int task) { run_task(j, k, task); }});
  return kernel;
}

}  // namespace tandem
