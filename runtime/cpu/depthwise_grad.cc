#include "runtime/cpu/depthwise_grad.h"

#include <utility>

#include "runtime/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/depthwise_grad.cc"
#include <hwy/foreach_target.h>  // first: compiles this file once for each instruction set
#include <hwy/highway.h>

#include "runtime/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kMostTaps = 4;  // of one kernel row at a time

// One vector of channels.
template <class T, bool kPart>
struct Lane {
  hn::Mask<D> mask;
  std::int64_t count;
  HWY_INLINE V read(const T* p) const {
    if constexpr (kPart) return load_part(p, mask, count);
    return load(p);
  }
};

template <class T>
const T* zero_row() {
  alignas(64) static const T kZero[kLanes] = {};
  return kZero;
}

// Outputs [from, to) of a row whose taps [first, first + count) of the kernel's row all lie inside the image.
struct Inner {
  std::int64_t from, to;
  Inner(const DepthwiseWindow& g, std::int64_t first, std::int64_t count) {
    const std::int64_t s = g.strides[1], left = first * g.dilations[1] - g.begin[1], right = left + (count - 1) * g.dilations[1];
    from = left >= 0 ? 0 : std::min(g.out[1], (-left + s - 1) / s);
    to = right >= g.in[1] ? from : std::clamp((g.in[1] - 1 - right) / s + 1, from, g.out[1]);
  }
};

// ---- 3x3: all nine sums in registers, kernel rows outside the image read zeros

template <class T>
struct Rows {
  const T* p[3];
  std::int64_t step[3];  // 0 outside
};

template <class T, bool kPart, std::size_t... R>
HWY_INLINE void add_tap(const Lane<T, kPart>& lane, const Rows<T>& rows, std::int64_t cell, V dy, V* sums, std::index_sequence<R...>) {
  ((sums[3 * R] = hn::MulAdd(lane.read(rows.p[R] + cell * rows.step[R]), dy, sums[3 * R])), ...);
}

template <class T, bool kPart>
void nine(const DepthwiseGradBlock& b, const Lane<T, kPart>& lane, const T* x, const T* dy, float* sums) {
  constexpr auto kRows = std::make_index_sequence<3>();
  const D d;
  const DepthwiseWindow& g = b.window;
  const Inner inner(g, 0, 3);
  const std::int64_t step = g.dilations[1];
  V s[9];
  for (std::int64_t t = 0; t < 9; ++t) s[t] = hn::LoadU(d, sums + t * kLanes);
  for (std::int64_t row = b.first_row; row < b.last_row; ++row) {
    Rows<T> rows;
    for (std::int64_t r = 0; r < 3; ++r) {
      const std::int64_t at = row * g.strides[0] - g.begin[0] + r * g.dilations[0];
      const bool inside = at >= 0 && at < g.in[0];
      rows.p[r] = inside ? x + at * g.in[1] * b.pitch : zero_row<T>();
      rows.step[r] = inside ? b.pitch : 0;
    }
    const T* p = dy + row * g.out[1] * b.dy_pitch;
    std::int64_t cell = -g.begin[1];
    const auto edge = [&](std::int64_t from, std::int64_t to) HWY_ATTR __attribute__((always_inline)) {
      for (std::int64_t i = from; i < to; ++i, p += b.dy_pitch, cell += g.strides[1]) {
        const V v = lane.read(p);
        if (cell >= 0 && cell < g.in[1]) add_tap(lane, rows, cell, v, s, kRows);
        if (cell + step >= 0 && cell + step < g.in[1]) add_tap(lane, rows, cell + step, v, s + 1, kRows);
        if (cell + 2 * step >= 0 && cell + 2 * step < g.in[1]) add_tap(lane, rows, cell + 2 * step, v, s + 2, kRows);
      }
    };
    edge(0, inner.from);
    for (std::int64_t i = inner.from; i < inner.to; ++i, p += b.dy_pitch, cell += g.strides[1]) {
      const V v = lane.read(p);
      add_tap(lane, rows, cell, v, s, kRows);
      add_tap(lane, rows, cell + step, v, s + 1, kRows);
      add_tap(lane, rows, cell + 2 * step, v, s + 2, kRows);
    }
    edge(inner.to, g.out[1]);
  }
  for (std::int64_t t = 0; t < 9; ++t) hn::StoreU(s[t], d, sums + t * kLanes);
}

// ---- any window: some taps of one kernel row at a time, two positions side by side

template <class T, bool kPart, std::size_t... N>
void taps_of_row(const DepthwiseGradBlock& b, const Lane<T, kPart>& lane, const T* x, const T* dy, std::int64_t r, std::int64_t first, float* sums,
                 std::index_sequence<N...>) {
  const D d;
  const DepthwiseWindow& g = b.window;
  const Inner inner(g, first, sizeof...(N));
  const std::int64_t tap = g.dilations[1], next = g.strides[1] * b.pitch;
  V s[sizeof...(N)], t[sizeof...(N)];
  ((s[N] = hn::LoadU(d, sums + static_cast<std::int64_t>(N) * kLanes), t[N] = hn::Zero(d)), ...);
  for (std::int64_t row = b.first_row; row < b.last_row; ++row) {
    const std::int64_t at = row * g.strides[0] - g.begin[0] + r * g.dilations[0];
    if (at < 0 || at >= g.in[0]) continue;
    const T* line = x + at * g.in[1] * b.pitch;
    const T* p = dy + row * g.out[1] * b.dy_pitch;
    std::int64_t cell = first * tap - g.begin[1];
    const auto one = [&](std::size_t n, V v, V & sum) HWY_ATTR __attribute__((always_inline)) {
      const std::int64_t c = cell + static_cast<std::int64_t>(n) * tap;
      if (c >= 0 && c < g.in[1]) sum = hn::MulAdd(lane.read(line + c * b.pitch), v, sum);
    };
    const auto edge = [&](std::int64_t from, std::int64_t to) HWY_ATTR __attribute__((always_inline)) {
      for (std::int64_t i = from; i < to; ++i, p += b.dy_pitch, cell += g.strides[1]) {
        const V v = lane.read(p);
        (one(N, v, s[N]), ...);
      }
    };
    edge(0, inner.from);
    std::int64_t i = inner.from;
    for (; i + 2 <= inner.to; i += 2, p += 2 * b.dy_pitch, cell += 2 * g.strides[1]) {
      const V v = lane.read(p), w = lane.read(p + b.dy_pitch);
      const T* from = line + cell * b.pitch;
      ((s[N] = hn::MulAdd(lane.read(from + static_cast<std::int64_t>(N) * tap * b.pitch), v, s[N]),
        t[N] = hn::MulAdd(lane.read(from + next + static_cast<std::int64_t>(N) * tap * b.pitch), w, t[N])),
       ...);
    }
    edge(i, g.out[1]);
  }
  ((hn::StoreU(hn::Add(s[N], t[N]), d, sums + static_cast<std::int64_t>(N) * kLanes)), ...);
}

template <class T, bool kPart>
void any(const DepthwiseGradBlock& b, const Lane<T, kPart>& lane, const T* x, const T* dy, float* sums) {
  const DepthwiseWindow& g = b.window;
  for (std::int64_t r = 0; r < g.kernel[0]; ++r) {
    for (std::int64_t first = 0; first < g.kernel[1]; first += kMostTaps) {
      float* to = sums + (r * g.kernel[1] + first) * kLanes;
      switch (std::min(kMostTaps, g.kernel[1] - first)) {
        case 1:
          taps_of_row(b, lane, x, dy, r, first, to, std::make_index_sequence<1>());
          break;
        case 2:
          taps_of_row(b, lane, x, dy, r, first, to, std::make_index_sequence<2>());
          break;
        case 3:
          taps_of_row(b, lane, x, dy, r, first, to, std::make_index_sequence<3>());
          break;
        default:
          taps_of_row(b, lane, x, dy, r, first, to, std::make_index_sequence<4>());
      }
    }
  }
}

template <class T, bool kPart>
void run_channels(const DepthwiseGradBlock& b, std::int64_t channel, std::int64_t count) {
  const Lane<T, kPart> lane{hn::FirstN(D(), static_cast<std::size_t>(count)), count};
  const T* x = static_cast<const T*>(b.x) + channel;
  const T* dy = static_cast<const T*>(b.dy) + channel;
  float* sums = b.sums + channel * b.window.taps();
  if (b.window.kernel[0] == 3 && b.window.kernel[1] == 3)
    nine(b, lane, x, dy, sums);
  else
    any(b, lane, x, dy, sums);
}

template <class T>
void run_type(const DepthwiseGradBlock& b) {
  for (std::int64_t c = 0; c < b.channels; c += kLanes) {
    if (c + kLanes <= b.channels)
      run_channels<T, false>(b, c, kLanes);
    else
      run_channels<T, true>(b, c, b.channels - c);
  }
}

void run(const DepthwiseGradBlock& b) {
  if (b.type == DType::kBF16) return run_type<BFloat16>(b);
  run_type<float>(b);
}

}  // namespace
}  // namespace tandem::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem {
HWY_EXPORT(run);

void depthwise_grad_run(const DepthwiseGradBlock& b) { HWY_DYNAMIC_DISPATCH(run)(b); }

}  // namespace tandem
#endif
