#include "runtime/cpu/depthwise.h"

#include <utility>

#include "runtime/cpu/activation_rows.h"
#include "runtime/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/depthwise.cc"
#include <hwy/foreach_target.h>  // first: compiles this file once for each instruction set

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "runtime/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::HWY_NAMESPACE {
namespace {

using Mask = hn::Mask<D>;
constexpr std::int64_t kTogether = 4;  // outputs whose sums run side by side

// One vector of channels of a block.
template <class T, bool kPart>
struct Lane {
  V floor, lower, upper, bias;  // floor: 0 with ReLU on the input, else minus infinity
  Mask mask;
  std::int64_t count;  // channels, <= kLanes

  HWY_INLINE V read(const T* p) const {
    if constexpr (kPart) return at_least(floor, load_part(p, mask, count));
    return at_least(floor, load(p));
  }
  HWY_INLINE void write(V v, float* p) const {
    v = at_most(upper, at_least(lower, v));
    if constexpr (kPart)
      hn::BlendedStore(v, mask, D(), p);
    else
      hn::StoreU(v, D(), p);
  }
};

// A run of output pixels in one row, and the input rows under it.
template <class T>
struct Run {
  const T* rows[3];
  std::int64_t steps[3];  // elements from one pixel to the next; 0 for rows outside (all zero)
  std::int64_t x, count;
};

template <class T>
const T* zero_row() {
  alignas(64) static const T kZero[kLanes] = {};
  return kZero;
}

// 3x3, stride 1: each input column is read once and feeds the three outputs that it belongs to.
template <class T, bool kPart>
void roll(const DepthwiseWindow& g, const Lane<T, kPart>& lane, const float* weights, const Run<T>& run, float* y, std::int64_t y_pitch) {
  const D d;
  const V w00 = hn::LoadU(d, weights), w01 = hn::LoadU(d, weights + kLanes), w02 = hn::LoadU(d, weights + 2 * kLanes);
  const V w10 = hn::LoadU(d, weights + 3 * kLanes), w11 = hn::LoadU(d, weights + 4 * kLanes), w12 = hn::LoadU(d, weights + 5 * kLanes);
  const V w20 = hn::LoadU(d, weights + 6 * kLanes), w21 = hn::LoadU(d, weights + 7 * kLanes), w22 = hn::LoadU(d, weights + 8 * kLanes);
  // The outputs whose last, middle and first column is the current one.
  V last = lane.bias, middle = lane.bias, first = lane.bias;
  const auto column = [&](std::int64_t c) HWY_ATTR __attribute__((always_inline)) {
    const V top = lane.read(run.rows[0] + c * run.steps[0]);
    last = hn::MulAdd(top, w02, last);
    middle = hn::MulAdd(top, w01, middle);
    first = hn::MulAdd(top, w00, lane.bias);
    const V centre = lane.read(run.rows[1] + c * run.steps[1]);
    last = hn::MulAdd(centre, w12, last);
    middle = hn::MulAdd(centre, w11, middle);
    first = hn::MulAdd(centre, w10, first);
    const V bottom = lane.read(run.rows[2] + c * run.steps[2]);
    last = hn::MulAdd(bottom, w22, last);
    middle = hn::MulAdd(bottom, w21, middle);
    first = hn::MulAdd(bottom, w20, first);
    hwy::Prefetch(run.rows[2] + c * run.steps[2] + 64 / sizeof(T));  // the next channels of the lowest row come from farthest
  };
  const auto shift = [&]() HWY_ATTR __attribute__((always_inline)) {
    last = middle;
    middle = first;
    first = lane.bias;
  };
  std::int64_t c = run.x - g.begin[1];
  for (std::int64_t i = 0; i < 2; ++i, ++c) {
    if (c >= 0 && c < g.in[1]) column(c);
    shift();
  }
  const std::int64_t inside = std::min(run.count, g.in[1] - c);
  std::int64_t i = 0;
  for (; i < inside; ++i, ++c, y += y_pitch) {
    column(c);
    lane.write(last, y);
    shift();
  }
  for (; i < run.count; ++i, y += y_pitch) {
    lane.write(last, y);
    shift();
  }
}

// Any window, outputs I... side by side in a row. The taps [from, to) of a window's row lie inside the image for all of them.
template <class T, bool kPart, std::size_t... I>
HWY_INLINE void outputs(std::index_sequence<I...>, const DepthwiseWindow& g, const Lane<T, kPart>& lane, const float* weights, const T* x,
                        std::int64_t pitch, std::int64_t top, std::int64_t left, std::int64_t from, std::int64_t to, float* y, std::int64_t y_pitch) {
  V sums[sizeof...(I)] = {(static_cast<void>(I), lane.bias)...};
  const std::int64_t next = g.strides[1] * pitch, tap = g.dilations[1] * pitch;
  for (std::int64_t r = 0; r < g.kernel[0]; ++r) {
    const std::int64_t at = top + r * g.dilations[0];
    if (at < 0 || at >= g.in[0]) continue;
    const T* p = x + (at * g.in[1] + left) * pitch + from * tap;
    const float* w = weights + (r * g.kernel[1] + from) * kLanes;
    for (std::int64_t c = from; c < to; ++c, p += tap, w += kLanes) {
      const V weight = hn::LoadU(D(), w);
      ((sums[I] = hn::MulAdd(lane.read(p + static_cast<std::int64_t>(I) * next), weight, sums[I])), ...);
    }
  }
  (lane.write(sums[I], y + static_cast<std::int64_t>(I) * y_pitch), ...);
}

template <class T, bool kPart>
void walk(const DepthwiseWindow& g, const Lane<T, kPart>& lane, const float* weights, const T* x, std::int64_t pitch, std::int64_t row,
          std::int64_t first, std::int64_t count, float* y, std::int64_t y_pitch) {
  const std::int64_t top = row * g.strides[0] - g.begin[0], columns = g.kernel[1], step = g.dilations[1];
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t left = (first + i) * g.strides[1] - g.begin[1];
    const std::int64_t last = left + (kTogether - 1) * g.strides[1] + (columns - 1) * step;  // column that the last of several reads
    float* to = y + i * y_pitch;
    if (left >= 0 && last < g.in[1] && i + kTogether <= count) {
      outputs(std::make_index_sequence<kTogether>(), g, lane, weights, x, pitch, top, left, 0, columns, to, y_pitch);
      i += kTogether;
    } else {
      const std::int64_t from = left < 0 ? std::min(columns, (-left + step - 1) / step) : 0;
      const std::int64_t end = left < g.in[1] ? std::min(columns, (g.in[1] - 1 - left) / step + 1) : 0;
      outputs(std::index_sequence<0>(), g, lane, weights, x, pitch, top, left, from, end, to, y_pitch);
      ++i;
    }
  }
}

bool rolls(const DepthwiseWindow& g) {
  // More than two columns of padding at the start and whole windows would lie in it.
  return g.kernel[0] == 3 && g.kernel[1] == 3 && g.strides[0] == 1 && g.strides[1] == 1 && g.dilations[0] == 1 && g.dilations[1] == 1 &&
         g.begin[1] <= 2;
}

template <class T, bool kPart>
void run_channels(const DepthwiseBlock& b, std::int64_t channel, std::int64_t count) {
  const D d;
  const DepthwiseWindow& g = b.window;
  Lane<T, kPart> lane;
  const float infinity = std::numeric_limits<float>::infinity();
  const bool clamp = is_clamp(b.activation);
  lane.floor = hn::Set(d, b.pre_relu ? 0.0f : -infinity);
  lane.lower = hn::Set(d, clamp ? lower_bound(b.activation) : -infinity);
  lane.upper = hn::Set(d, clamp ? upper_bound(b.activation) : infinity);
  lane.mask = hn::FirstN(d, static_cast<std::size_t>(count));
  lane.count = count;
  lane.bias = b.bias ? hn::MaskedLoad(lane.mask, d, b.bias + channel) : hn::Zero(d);
  const float* weights = b.packed + channel * g.taps();
  const T* x = static_cast<const T*>(b.x) + channel;
  for (std::int64_t p = b.first; p < b.last;) {
    const std::int64_t row = p / g.out[1], at = p % g.out[1], pixels = std::min(b.last - p, g.out[1] - at);
    float* y = b.y + (p - b.first) * b.y_pitch + channel;
    if (rolls(g)) {
      Run<T> run{.rows = {}, .steps = {}, .x = at, .count = pixels};
      for (std::int64_t r = 0; r < 3; ++r) {
        const std::int64_t in = row - g.begin[0] + r;
        const bool inside = in >= 0 && in < g.in[0];
        run.rows[r] = inside ? x + in * g.in[1] * b.pitch : zero_row<T>();
        run.steps[r] = inside ? b.pitch : 0;
      }
      roll<T, kPart>(g, lane, weights, run, y, b.y_pitch);
    } else {
      walk<T, kPart>(g, lane, weights, x, b.pitch, row, at, pixels, y, b.y_pitch);
    }
    p += pixels;
  }
}

template <class T>
void run_type(const DepthwiseBlock& b) {
  for (std::int64_t c = 0; c < b.channels; c += kLanes) {
    if (c + kLanes <= b.channels)
      run_channels<T, false>(b, c, kLanes);
    else
      run_channels<T, true>(b, c, b.channels - c);
  }
  if (!is_clamp(b.activation)) activate_rows(b.activation, b.y, b.last - b.first, b.channels, b.y_pitch);
}

void run(const DepthwiseBlock& b) {
  if (b.type == DType::kBF16) return run_type<BFloat16>(b);
  run_type<float>(b);
}

std::int64_t lanes() { return kLanes; }

}  // namespace
}  // namespace tandem::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem {
HWY_EXPORT(run);
HWY_EXPORT(lanes);

std::int64_t depthwise_lanes() { return HWY_DYNAMIC_DISPATCH(lanes)(); }
void depthwise_run(const DepthwiseBlock& b) { HWY_DYNAMIC_DISPATCH(run)(b); }

}  // namespace tandem
#endif
