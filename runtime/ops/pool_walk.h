// Walking the windows of a pool: output pixels by tasks, the input cells of each. Shared by the kernels of the pools and of their gradients.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/ops/op.h"
#include "runtime/ops/window.h"

namespace tandem {

inline constexpr std::size_t kMostSpatial = 8;

enum class PoolKind : std::uint8_t { kMax, kAverage, kLp };

// Of the pools, and of the operators that are their gradients.
struct PoolParams {
  Window window;
  PoolKind kind = PoolKind::kMax;
  bool count_pads = false;    // AveragePool: padding counts as cells of value 0
  bool column_major = false;  // MaxPool's Indices: the first spatial dimension runs fastest
  std::int64_t p = 2;         // LpPool
};
void pool_gradient(GradientContext&);  // every pool's OpDef::gradient

// One pool over [N, C, spatial...]: how the work is cut, and where things lie. Strides in elements of the operand's own layout.
struct PoolGrid {
  Window window;
  std::int64_t images = 0, channels = 0;
  std::vector<std::int64_t> in_strides, out_strides;  // N, C, spatial
  std::int64_t rows_per_task = 1, channels_per_task = 1;
  std::int64_t row_blocks = 1, channel_blocks = 1;

  // Cuts by image, block of output rows and block of channels, from shapes alone.
  PoolGrid(const Window&, const TensorDesc& in, const TensorDesc& out);
  int tasks() const { return static_cast<int>(images * row_blocks * channel_blocks); }
};

// An output pixel with its window clipped to the input.
struct PoolPixel {
  std::int64_t image = 0, channel_begin = 0, channel_end = 0;
  std::array<std::int64_t, kMostSpatial> at{};
  std::array<Window::Reach, kMostSpatial> reach{};

  std::int64_t out_offset(const PoolGrid&) const;  // of channel_begin
  std::int64_t in_offset(const PoolGrid&) const;   // of channel_begin in the image's first pixel
  std::int64_t cells(const PoolGrid&) const;       // in the input
  std::int64_t padded_cells(const PoolGrid&) const;

  // f(offset) for each cell, first dimension outermost: elements from in_offset(); `index` is the cell's position along each dimension.
  template <class F>
  void for_each_cell(const PoolGrid& g, F&& f) const {
    const std::size_t r = g.window.rank();
    std::array<std::int64_t, kMostSpatial> k{}, index{};
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < r; ++d) {
      if (reach[d].first >= reach[d].last) return;
      k[d] = reach[d].first;
      index[d] = reach[d].start + k[d] * g.window.dilations[d];
      offset += index[d] * g.in_strides[2 + d];
    }
    for (;;) {
      f(offset, index);
      std::size_t d = r;
      for (; d-- > 0;) {
        const std::int64_t step = g.window.dilations[d];
        if (++k[d] < reach[d].last) {
          index[d] += step;
          offset += step * g.in_strides[2 + d];
          break;
        }
        const std::int64_t back = (reach[d].last - 1 - reach[d].first) * step;
        k[d] = reach[d].first;
        index[d] -= back;
        offset -= back * g.in_strides[2 + d];
        if (d == 0) return;
      }
    }
  }
};

// f(pixel) for each output pixel in rows [p.at[0], row_end); image and channels as in p.
template <class F>
void for_each_pixel(const PoolGrid& g, PoolPixel p, std::int64_t row_end, F&& f) {
  const std::size_t r = g.window.rank();
  for (std::size_t d = 0; d < r; ++d) p.reach[d] = g.window.reach(d, p.at[d]);
  while (p.at[0] < row_end) {
    f(static_cast<const PoolPixel&>(p));
    for (std::size_t d = r; d-- > 0;) {
      ++p.at[d];
      if (d > 0 && p.at[d] == g.window.output[d]) {
        p.at[d] = 0;
        p.reach[d] = g.window.reach(d, 0);
      } else {
        if (p.at[d] < g.window.output[d]) p.reach[d] = g.window.reach(d, p.at[d]);
        break;
      }
    }
  }
}

// f(pixel) for each output pixel of a task.
template <class F>
void for_each_pixel(const PoolGrid& g, int task, F&& f) {
  PoolPixel p;
  p.channel_begin = task % g.channel_blocks * g.channels_per_task;
  p.channel_end = std::min(g.channels, p.channel_begin + g.channels_per_task);
  const std::int64_t block = task / g.channel_blocks % g.row_blocks;
  p.image = task / (g.channel_blocks * g.row_blocks);
  p.at[0] = block * g.rows_per_task;
  for_each_pixel(g, p, std::min(g.window.output[0], (block + 1) * g.rows_per_task), f);
}

}  // namespace tandem
