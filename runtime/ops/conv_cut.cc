// How the hot convolutions are cut into tasks: from shapes alone.
#include <algorithm>

#include "runtime/ops/conv_fast.h"

namespace tandem {
namespace {

constexpr std::int64_t kMostPixels = 96, kFewestPixels = 48;
constexpr std::int64_t kBlockFloats = 70000;     // of A and C in one block: what a small L2 keeps beside a panel of weights
constexpr std::int64_t kTaskProducts = 1 << 20;  // multiply-adds that make a task worth its start
constexpr std::int64_t kNearWeights = 1 << 16;   // floats that L2 keeps beside a block
constexpr std::int64_t kTasksOfAnImage = 8;      // enough for several threads

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The nearest number of equal tasks that two, or many tasks four, threads share without rest.
std::int64_t even(std::int64_t tasks) {
  const std::int64_t threads = tasks > 8 ? 4 : 2;
  return tasks == 1 ? 1 : (tasks + threads / 2) / threads * threads;
}

}  // namespace

bool is_hot_activation(const TensorDesc& d, DType type) {
  return !d || (d.layout == Layout::kChannelsLast && d.dtype == type && (type == DType::kF32 || type == DType::kBF16));
}

PixelCut cut_pixels(const ProductPlan& plan, std::int64_t images, std::int64_t pixels, std::int64_t outputs, std::int64_t split) {
  const std::int64_t tile = plan.tile_rows(), width = plan.panel_width(), depth = plan.depth;
  PixelCut c;
  c.images = pixels == 0 ? 0 : images;
  c.pixels = pixels;
  c.panels = divide_up(outputs, width);
  // Small weights stay near, however often they are read: smaller blocks then, so that an image gives enough tasks.
  const std::int64_t roof = depth * outputs <= kNearWeights ? kMostPixels / 2 : kMostPixels;
  const std::int64_t most = std::clamp(kBlockFloats / std::max<std::int64_t>(1, depth + outputs), kFewestPixels, roof);
  c.unit = tile;
  const std::int64_t blocks = even(std::max<std::int64_t>(1, (pixels + most / 2) / most));  // to the nearest: a block may be half as large again
  const double products = static_cast<double>(pixels) / static_cast<double>(blocks) * static_cast<double>(depth) * static_cast<double>(outputs);
  const auto blocks_of_task =
      static_cast<std::int64_t>(std::clamp(static_cast<double>(kTaskProducts) / std::max(1.0, products), 1.0, static_cast<double>(blocks)));
  const std::int64_t units = divide_up(pixels, c.unit);
  c.pixel_tasks = std::min(units, even(divide_up(blocks, blocks_of_task)));
  c.block = std::max<std::int64_t>(1, divide_up(divide_up(units, std::max<std::int64_t>(1, c.pixel_tasks)), blocks_of_task) * c.unit);
  const std::int64_t worth = std::max<std::int64_t>(1, divide_up(split, width));
  if (blocks_of_task == 1 && c.pixel_tasks > 0 && c.pixel_tasks < kTasksOfAnImage) {
    const auto by_work = static_cast<std::int64_t>(products / static_cast<double>(kTaskProducts) * 2);
    c.panel_groups = std::clamp<std::int64_t>(std::min({c.panels / worth, by_work, divide_up(kTasksOfAnImage, c.pixel_tasks)}), 1, c.panels);
  }
  return c;
}

PixelCut::Part PixelCut::part(int task) const {
  const std::int64_t group = task % panel_groups, rest = task / panel_groups;
  Part p;
  p.image = rest / pixel_tasks;
  const std::int64_t units = divide_up(pixels, unit), at = rest % pixel_tasks;
  p.first = units * at / pixel_tasks * unit;
  p.last = std::min(pixels, units * (at + 1) / pixel_tasks * unit);
  p.first_panel = panels * group / panel_groups;
  p.last_panel = panels * (group + 1) / panel_groups;
  return p;
}

DepthwiseWindow depthwise_window(const Window& w) {
  DepthwiseWindow d{.kernel = {1, 1}, .strides = {1, 1}, .dilations = {1, 1}, .begin = {0, 0}, .in = {1, 1}, .out = {1, 1}};
  for (std::size_t i = 0, to = 2 - w.rank(); i < w.rank(); ++i, ++to) {
    d.kernel[to] = w.kernel[i];
    d.strides[to] = w.strides[i];
    d.dilations[to] = w.dilations[i];
    d.begin[to] = w.begin[i];
    d.in[to] = w.input[i];
    d.out[to] = w.output[i];
  }
  return d;
}

Sight sight_of(const Window& w) {
  Sight s{elements(w.input), elements(w.output), 0};
  std::int64_t plane = 1;
  for (std::size_t d = w.rank(); d-- > 0; plane *= w.input[d]) s.seen += std::max<std::int64_t>(0, w.extent(d) - 1 - w.begin[d]) * plane;
  return s;
}

void fetch_next(const Sight& s, const void* image, std::int64_t pixel_bytes, std::int64_t first, std::int64_t last, GemmBlock& g) {
  const std::int64_t per_output = divide_up(s.in_pixels, s.out_pixels);
  const std::int64_t from = std::min(s.in_pixels, last * per_output + s.seen), end = std::min(s.in_pixels, from + (last - first) * per_output);
  g.next = static_cast<const std::byte*>(image) + from * pixel_bytes;
  g.next_bytes = (end - from) * pixel_bytes;
}

}  // namespace tandem
