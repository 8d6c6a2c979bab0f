// Depthwise convolutions on the hot kernel.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/cpu/activation_rows.h"
#include "runtime/ops/conv_fast.h"
#include "runtime/ops/packed_operand.h"

namespace tandem {
namespace {

constexpr std::size_t kWeights = 1, kBias = 2, kResidual = 3;
constexpr std::int64_t kTaskOutputs = 1 << 16;

struct Job {
  ConvParams conv;
  DepthwiseWindow window;
  std::int64_t channels, x_pitch, y_pitch, residual_pitch = 0, pixels, per_task, tasks;
  DType type;
  bool bias, residual;
  PackedOperand weights;
  // Results go straight to Y when nothing is left to do with them.
  bool direct() const { return type == DType::kF32 && !residual; }
};

void finish_depthwise(const Job& j, const KernelArgs& k, std::int64_t pixel, std::int64_t count, float* rows) {
  for (std::int64_t i = 0; i < count; ++i) {
    float* row = rows + i * j.channels;
    const std::int64_t from = (pixel + i) * j.residual_pitch, to = (pixel + i) * j.y_pitch;
    for (std::int64_t c = 0; j.residual && c < j.channels; ++c) {
      row[c] += j.type == DType::kBF16 ? static_cast<float>(k.input<BFloat16>(kResidual)[from + c]) : k.input<float>(kResidual)[from + c];
    }
    if (j.residual) activate_rows(j.conv.activation, row, 1, j.channels, j.channels);
    if (j.type == DType::kBF16)
      narrow_row(row, k.output<BFloat16>(0) + to, j.channels);
    else
      std::memcpy(k.output<float>(0) + to, row, static_cast<std::size_t>(j.channels) * sizeof(float));
  }
}

void run_depthwise(const Job& j, const KernelArgs& k, int task) {
  const std::int64_t image = task / j.tasks, in_pixels = j.window.in[0] * j.window.in[1];
  DepthwiseBlock b;
  b.window = j.window;
  b.channels = j.channels;
  b.first = task % j.tasks * j.per_task;
  b.last = std::min(j.pixels, b.first + j.per_task);
  b.type = j.type;
  b.x = static_cast<const std::byte*>(k.in[0]) + static_cast<std::size_t>(image * in_pixels * j.x_pitch) * size_of(j.type);
  b.pitch = j.x_pitch;
  b.pre_relu = j.conv.pre_relu;
  b.packed = reinterpret_cast<const float*>(j.weights.data(k));
  if (j.bias) b.bias = k.input<float>(kBias);
  if (!j.residual) b.activation = j.conv.activation;
  const std::int64_t pixel = image * j.pixels + b.first;
  b.y = j.direct() ? k.output<float>(0) + pixel * j.y_pitch : reinterpret_cast<float*>(k.scratch);
  b.y_pitch = j.direct() ? j.y_pitch : j.channels;
  depthwise_run(b);
  if (!j.direct()) finish_depthwise(j, k, pixel, b.last - b.first, b.y);
}

}  // namespace

Kernel fast_depthwise(CpuContext& c, const ConvParams& p, bool mirrored) {
  Job j;
  j.conv = p;
  j.window = depthwise_window(p.window);
  j.channels = c.in[0].shape[1];
  j.x_pitch = c.in[0].channel_pitch;
  j.y_pitch = c.out[0].channel_pitch;
  j.pixels = elements(spatial(c.out[0].shape));
  j.type = c.out[0].dtype;
  j.bias = c.has_input(kBias);
  j.residual = c.has_input(kResidual);
  if (j.residual) j.residual_pitch = c.in[kResidual].channel_pitch;
  const std::int64_t row = j.window.out[1], rows = std::max<std::int64_t>(1, kTaskOutputs / std::max<std::int64_t>(1, row * j.channels));
  j.per_task = std::max<std::int64_t>(1, rows * row);
  j.tasks = (j.pixels + j.per_task - 1) / j.per_task;
  Kernel kernel;
  const bool half = j.type == DType::kBF16;
  kernel.implementation = half ? "hwy:depthwise_bf16" : "hwy:depthwise_f32";
  if (!j.direct()) kernel.scratch_bytes = whole_lines(j.per_task * j.channels * 4);
  const std::int64_t taps = j.window.taps();
  const auto bytes = static_cast<std::size_t>(depthwise_packed_floats(j.channels, taps)) * sizeof(float);
  j.weights = PackedOperand(c, kernel, kWeights, fmt::format("depthwise{}:r{}:m{}", depthwise_lanes(), half, mirrored), bytes, 1,
                            [channels = j.channels, taps, half, mirrored](const void* values, std::int64_t, std::byte* to) {
                              const auto* w = static_cast<const float*>(values);
                              depthwise_pack(channels, taps, reinterpret_cast<float*>(to), [&](std::int64_t ch, std::int64_t t) {
                                return depthwise_weight(w[ch * taps + (mirrored ? taps - 1 - t : t)], half);
                              });
                            });
  kernel.stages.push_back({static_cast<int>(c.out[0].shape[0] * j.tasks), [j](const KernelArgs& k, int task) { run_depthwise(j, k, task); }});
  if (may_take_residual(c, kResidual)) kernel.in_place = 1u << kResidual;
  return kernel;
}

}  // namespace tandem
