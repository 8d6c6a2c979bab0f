#include "runtime/ops/pool_walk.h"

#include <algorithm>

namespace tandem {
namespace {

constexpr std::int64_t kTaskReads = 1 << 17;  // input elements that a task reads at least, where there are as many
constexpr std::int64_t kChannelBlock = 256;   // of a pool with a single output row

}  // namespace

PoolGrid::PoolGrid(const Window& w, const TensorDesc& in, const TensorDesc& out)
    : window(w), images(in.shape[0]), channels(in.shape[1]), in_strides(in.strides()), out_strides(out.strides()) {
  if (out.size() == 0) {
    images = 0;
    return;
  }
  channels_per_task = w.output[0] == 1 ? std::min(channels, kChannelBlock) : channels;
  channel_blocks = (channels + channels_per_task - 1) / channels_per_task;
  double row_reads = static_cast<double>(channels_per_task);
  for (std::size_t d = 0; d < w.rank(); ++d) row_reads *= static_cast<double>(w.kernel[d]) * (d == 0 ? 1.0 : static_cast<double>(w.output[d]));
  rows_per_task = std::clamp<std::int64_t>(static_cast<std::int64_t>(kTaskReads / row_reads), 1, w.output[0]);
  // A task count must stay an int: absurdly long rows of tiny windows share tasks.
  while (images * ((w.output[0] + rows_per_task - 1) / rows_per_task) * channel_blocks > (1 << 30) && rows_per_task < w.output[0]) {
    rows_per_task = std::min(w.output[0], rows_per_task * 2);
  }
  row_blocks = (w.output[0] + rows_per_task - 1) / rows_per_task;
}

std::int64_t PoolPixel::out_offset(const PoolGrid& g) const {
  std::int64_t offset = image * g.out_strides[0] + channel_begin * g.out_strides[1];
  for (std::size_t d = 0; d < g.window.rank(); ++d) offset += at[d] * g.out_strides[2 + d];
  return offset;
}

std::int64_t PoolPixel::in_offset(const PoolGrid& g) const { return image * g.in_strides[0] + channel_begin * g.in_strides[1]; }

std::int64_t PoolPixel::cells(const PoolGrid& g) const {
  std::int64_t n = 1;
  for (std::size_t d = 0; d < g.window.rank(); ++d) n *= reach[d].last - reach[d].first;
  return n;
}

std::int64_t PoolPixel::padded_cells(const PoolGrid& g) const {
  std::int64_t n = 1;
  for (std::size_t d = 0; d < g.window.rank(); ++d) n *= g.window.padded_count(d, at[d]);
  return n;
}

}  // namespace tandem
