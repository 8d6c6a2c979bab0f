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

// Outputs [from, to) of a row whose taps [first, first + count) of the kernel's row all lie inside the image.
struct Inner {
  std::int64_t from, to;
  Inner(const DepthwiseWindow& g, std::int64_t first, std::int64_t count) {
    const std::int64_t s = g.strides[1], left = first * g.dilations[1] - g.begin[1], right = left + (count - 1) * g.dilations[1];
    from = left >= 0 ? 0 : std::min(g.out[1], (-left + s - 1) / s);
    to = right >= g.in[1] ? from : std::clamp((g.in[1] - 1 - right) / s + 1, from, g.out[1]);
  }
};

// ---- 3x3: all nine sums in registers

template <class T>
struct Rows {
  const T* p[3];
  bool inside[3];
  bool all() const { return inside[0] && inside[1] && inside[2]; }
};

// The three taps of one column, `at` elements from the rows' starts.
template <bool kAll, class T, bool kPart, std::size_t... R>
HWY_INLINE void add_column(const Lane<T, kPart>& lane, const Rows<T>& rows, std::int64_t at, V dy, V* sums, std::index_sequence<R...>) {
  const auto row = [&](std::size_t r) HWY_ATTR __attribute__((always_inline)) {
    if (kAll || rows.inside[r]) sums[3 * r] = hn::MulAdd(lane.read(rows.p[r] + at), dy, sums[3 * r]);
  };
  (row(R), ...);
}

template <bool kAll, class T, bool kPart>
HWY_INLINE void add_row(const DepthwiseGradBlock& b, const Inner& inner, const Lane<T, kPart>& lane, const Rows<T>& rows, const T* p, V* s) {
  constexpr auto kRows = std::make_index_sequence<3>();
  const DepthwiseWindow& g = b.window;
  const std::int64_t step = g.dilations[1], column = step * b.pitch, next = g.strides[1] * b.pitch;
  std::int64_t cell = -g.begin[1];
  const auto edge = [&](std::int64_t from, std::int64_t to) HWY_ATTR __attribute__((always_inline)) {
    for (std::int64_t i = from; i < to; ++i, p += b.dy_pitch, cell += g.strides[1]) {
      const V v = lane.read(p);
      if (cell >= 0 && cell < g.in[1]) add_column<kAll>(lane, rows, cell * b.pitch, v, s, kRows);
      if (cell + step >= 0 && cell + step < g.in[1]) add_column<kAll>(lane, rows, (cell + step) * b.pitch, v, s + 1, kRows);
      if (cell + 2 * step >= 0 && cell + 2 * step < g.in[1]) add_column<kAll>(lane, rows, (cell + 2 * step) * b.pitch, v, s + 2, kRows);
    }
  };
  edge(0, inner.from);
  std::int64_t at = cell * b.pitch;
  for (std::int64_t i = inner.from; i < inner.to; ++i, p += b.dy_pitch, at += next) {
    const V v = lane.read(p);
    add_column<kAll>(lane, rows, at, v, s, kRows);
    add_column<kAll>(lane, rows, at + column, v, s + 1, kRows);
    add_column<kAll>(lane, rows, at + 2 * column, v, s + 2, kRows);
  }
  cell += (inner.to - inner.from) * g.strides[1];
  edge(inner.to, g.out[1]);
}

template <class T, bool kPart, std::size_t... N>
void nine(const DepthwiseGradBlock& b, const Lane<T, kPart>& lane, const T* x, const T* dy, float* sums, std::index_sequence<N...>) {
  const D d;
  const DepthwiseWindow& g = b.window;
  const Inner inner(g, 0, 3);
  V s[9];
  ((s[N] = hn::LoadU(d, sums + static_cast<std::int64_t>(N) * kLanes)), ...);  // a loop would keep them in memory
  for (std::int64_t row = b.first_row; row < b.last_row; ++row) {
    Rows<T> rows;
    for (std::int64_t r = 0; r < 3; ++r) {
      const std::int64_t at = row * g.strides[0] - g.begin[0] + r * g.dilations[0];
      rows.inside[r] = at >= 0 && at < g.in[0];
      rows.p[r] = x + (rows.inside[r] ? at * g.in[1] * b.pitch : 0);
    }
    const T* p = dy + row * g.out[1] * b.dy_pitch;
    if (rows.all())
      add_row<true>(b, inner, lane, rows, p, s);
    else
      add_row<false>(b, inner, lane, rows, p, s);
  }
  (hn::StoreU(s[N], d, sums + static_cast<std::int64_t>(N) * kLanes), ...);
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
    nine(b, lane, x, dy, sums, std::make_index_sequence<9>());
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
