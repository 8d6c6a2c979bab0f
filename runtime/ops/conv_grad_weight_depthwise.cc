// ConvGradWeight of depthwise convolutions. Tasks cut channels, and parts of the images' rows, which are walked in blocks that stay near.
#include <algorithm>

#include "runtime/cpu/depthwise_grad.h"
#include "runtime/ops/conv_fast.h"
#include "runtime/ops/conv_grad_weight.h"

namespace tandem {
namespace {

constexpr std::size_t kX = 0, kDy = 1;
constexpr std::int64_t kChannels = 64;          // of a task: whole vectors on every machine, long pieces of a pixel
constexpr std::int64_t kBlockFloats = 1 << 16;  // of X and dY in a block of rows
constexpr std::int64_t kTaskOutputs = 1 << 16;  // elements of dY that a task is worth

struct Job {
  DepthwiseWindow window;
  std::int64_t images, channels, x_pitch, dy_pitch, dw_pitch, rows, row_blocks, channel_blocks;
  DType type;
  GradParts sums;
};

void run_task(const Job& j, const KernelArgs& k, int task) {
  const std::int64_t part = task / j.channel_blocks, blocks = j.images * j.row_blocks;
  const std::int64_t first = task % j.channel_blocks * kChannels, count = std::min(kChannels, j.channels - first), taps = j.window.taps(),
                     lanes = depthwise_lanes();
  const std::int64_t in_pixels = j.window.in[0] * j.window.in[1], out_pixels = j.window.out[0] * j.window.out[1];
  const std::size_t unit = size_of(j.type);
  DepthwiseGradBlock b;
  b.window = j.window;
  b.channels = count;
  b.type = j.type;
  b.pitch = j.x_pitch;
  b.dy_pitch = j.dy_pitch;
  b.sums = reinterpret_cast<float*>(k.scratch);
  std::fill_n(b.sums, depthwise_packed_floats(count, taps), 0.0f);
  for (std::int64_t i = blocks * part / j.sums.parts; i < blocks * (part + 1) / j.sums.parts; ++i) {
    const std::int64_t n = i / j.row_blocks;
    b.x = static_cast<const std::byte*>(k.in[kX]) + static_cast<std::size_t>(n * in_pixels * j.x_pitch + first) * unit;
    b.dy = static_cast<const std::byte*>(k.in[kDy]) + static_cast<std::size_t>(n * out_pixels * j.dy_pitch + first) * unit;
    b.first_row = i % j.row_blocks * j.rows;
    b.last_row = std::min(j.window.out[0], b.first_row + j.rows);
    depthwise_grad_run(b);
  }
  float* dw = j.sums.sums(k, part) + first * taps * j.dw_pitch;
  for (std::int64_t c = 0; c < count; ++c) {
    const float* sums = b.sums + c / lanes * lanes * taps + c % lanes;
    for (std::int64_t t = 0; t < taps; ++t) dw[(c * taps + t) * j.dw_pitch] = sums[t * lanes];
  }
}

}  // namespace

std::optional<Kernel> depthwise_grad_weight(CpuContext& c, const ConvParams& p) {
  const TensorDesc &x = c.in[kX], &dy = c.in[kDy], &dw = c.out[0];
  if (p.group == 1 || p.group != x.shape[1] || p.group != dy.shape[1] || p.window.rank() > 2) return std::nullopt;
  if (!is_hot_activation(x, x.dtype) || !is_hot_activation(dy, x.dtype)) return std::nullopt;
  if (dw.dtype != DType::kF32 || dw.layout != Layout::kChannelsLast) return std::nullopt;
  Job j{depthwise_window(p.window), x.shape[0], x.shape[1], x.channel_pitch, dy.channel_pitch, dw.channel_pitch, 1, 1, 1, x.dtype, {}};
  const std::int64_t of_row = std::min(kChannels, j.channels) * (j.window.out[1] + j.window.in[1] * j.window.strides[0]);
  j.channel_blocks = (j.channels + kChannels - 1) / kChannels;
  // At least as many blocks of rows as there may be parts.
  const std::int64_t enough = std::max<std::int64_t>(1, j.images * j.window.out[0] / kMostGradParts);
  j.rows = std::clamp<std::int64_t>(kBlockFloats / std::max<std::int64_t>(1, of_row), 1, std::min(enough, j.window.out[0]));
  j.row_blocks = (j.window.out[0] + j.rows - 1) / j.rows;
  j.sums.size = j.channels * j.window.taps();
  const std::int64_t worth = std::min(kMostGradParts, dy.size() / kTaskOutputs);
  if (j.dw_pitch == 1) j.sums.parts = std::clamp<std::int64_t>(std::min(worth / j.channel_blocks, j.images * j.row_blocks), 1, kMostGradParts);
  Kernel kernel;
  kernel.implementation = j.type == DType::kBF16 ? "hwy:depthwise_grad_bf16" : "hwy:depthwise_grad_f32";
  kernel.scratch_bytes = whole_lines(depthwise_packed_floats(kChannels, j.window.taps()) * 4);
  j.sums.reserve(kernel);
  const auto tasks = static_cast<int>(j.channel_blocks * j.sums.parts);
  kernel.stages.push_back({tasks, [j](const KernelArgs& k, int task) { run_task(j, k, task); }});
  j.sums.add_stage(kernel);
  return kernel;
}

}  // namespace tandem
