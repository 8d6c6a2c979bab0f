#include "runtime/cpu/gemm.h"

#include <cstddef>
#include <utility>

#include "runtime/cpu/activation_rows.h"
#include "runtime/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/gemm.cc"
#include <hwy/foreach_target.h>  // first: compiles this file once for each instruction set

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "runtime/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kWidth = 2 * kLanes;
// 2 * kTileRows accumulators, two vectors of B and one of A fill the 32 (AVX-512) or 16 registers.
constexpr std::size_t kTileRows = kLanes >= 16 ? 14 : 6;
// Steps of k that B is fetched ahead into L1; few rows use B up faster than memory brings it.
template <std::size_t M>
constexpr std::int64_t kAhead = M <= 2 ? 64 : 16;

// Memory that will be wanted soon, fetched into L2 bit by bit while a tile is computed. A burst would fill the queues and stall.
struct Ahead {
  const char* at = nullptr;
  std::ptrdiff_t step = 0;  // bytes for four steps of k, at most a line; 0: nothing to fetch
};

// One tile: M rows by one panel.
struct Tile {
  const float* const* rows;  // M pointers per segment
  std::int64_t row_step;     // pointers from one segment to the next
  std::int64_t segments, depth;
  const float* b;
  const float* bias;      // kWidth floats
  const float* residual;  // or null
  std::int64_t residual_stride;
  float* c;
  std::int64_t c_stride;
  float lower, upper;
  Ahead ahead;
};

template <std::size_t M>
struct Sums {
  V low[M], high[M];
};

template <std::size_t M>
struct Pointers {
  const float* row[M];
};

template <std::size_t M, std::size_t... R>
HWY_INLINE void take(const float* const* rows, Pointers<M>& p, std::index_sequence<R...>) {
  ((p.row[R] = rows[R]), ...);  // each on its own: a vector load would wait for the stores that have just made them
}

template <std::size_t M, std::size_t... R>
HWY_INLINE void step(const Pointers<M>& a, std::int64_t k, const float* HWY_RESTRICT b, Sums<M>& s, std::index_sequence<R...>) {
  const D d;
  const V low = hn::Load(d, b), high = hn::Load(d, b + kLanes);
  const auto row = [&](std::size_t r) HWY_ATTR __attribute__((always_inline)) {
    const V x = hn::Set(d, a.row[r][k]);
    s.low[r] = hn::MulAdd(x, low, s.low[r]);
    s.high[r] = hn::MulAdd(x, high, s.high[r]);
  };
  (row(R), ...);
}

template <std::size_t M, std::size_t... R>
HWY_INLINE void finish(const Tile& t, Sums<M>& s, std::index_sequence<R...>) {
  const D d;
  const V lower = hn::Set(d, t.lower), upper = hn::Set(d, t.upper);
  const auto row = [&](std::size_t r) HWY_ATTR __attribute__((always_inline)) {
    V low = s.low[r], high = s.high[r];
    if (t.residual) {
      const float* from = t.residual + static_cast<std::int64_t>(r) * t.residual_stride;
      low = hn::Add(low, hn::LoadU(d, from));
      high = hn::Add(high, hn::LoadU(d, from + kLanes));
    }
    low = at_most(upper, at_least(lower, low));
    high = at_most(upper, at_least(lower, high));
    float* to = t.c + static_cast<std::int64_t>(r) * t.c_stride;
    hn::StoreU(low, d, to);
    hn::StoreU(high, d, to + kLanes);
  };
  (row(R), ...);
}

template <std::size_t M, std::size_t... R>
HWY_INLINE void start(const float* bias, Sums<M>& s, std::index_sequence<R...>) {
  const D d;
  const V low = hn::Load(d, bias), high = hn::Load(d, bias + kLanes);
  ((s.low[R] = low, s.high[R] = high), ...);
}

template <std::size_t M>
HWY_NOINLINE void tile(const Tile& t) {
  constexpr auto kRows = std::make_index_sequence<M>();
  Sums<M> s;
  start<M>(t.bias, s, kRows);
  const float* HWY_RESTRICT b = t.b;
  const float* const* rows = t.rows;
  const char* ahead = t.ahead.at;
  for (std::int64_t segment = 0; segment < t.segments; ++segment, rows += t.row_step) {
    Pointers<M> a;
    take(rows, a, kRows);
    std::int64_t k = 0;
    for (; k + 4 <= t.depth; k += 4, b += 4 * kWidth) {
      for (std::int64_t line = 0; line < 4 * kWidth; line += 16) hwy::Prefetch(b + kAhead<M> * kWidth + line);
      __builtin_prefetch(ahead, 0, 2);
      ahead += t.ahead.step;
      step<M>(a, k, b, s, kRows);
      HWY_FENCE;  // keeps the compiler from mixing the steps, which spills accumulators
      step<M>(a, k + 1, b + kWidth, s, kRows);
      HWY_FENCE;
      step<M>(a, k + 2, b + 2 * kWidth, s, kRows);
      HWY_FENCE;
      step<M>(a, k + 3, b + 3 * kWidth, s, kRows);
    }
    for (; k < t.depth; ++k, b += kWidth) step<M>(a, k, b, s, kRows);
  }
  finish<M>(t, s, kRows);
}

using TileOf = void (*)(const Tile&);
template <std::size_t... M>
TileOf choose(std::size_t rows, std::index_sequence<M...>) {
  static constexpr TileOf kTiles[] = {tile<M + 1>...};
  return kTiles[rows - 1];
}

// The beginning of the rows that the next tile reads; what follows is fetched by the hardware.
void fetch_rows(const GemmBlock& g, std::int64_t row) {
  for (std::int64_t r = row; r < std::min(g.rows, row + static_cast<std::int64_t>(kTileRows)); ++r) {
    const float* a = g.table ? g.table[r] : g.a + r * g.a_stride;
    hwy::Prefetch(a);
    hwy::Prefetch(a + 16);
  }
}

// Lines of C and the residual that the tile will meet.
void fetch(const GemmBlock& g, std::int64_t row, std::int64_t rows, std::int64_t output) {
  for (std::int64_t r = row; r < row + rows; ++r) {
    const float* c = static_cast<const float*>(g.c) + r * g.c_stride + output;
    for (std::int64_t line = 0; line < kWidth; line += 16) __builtin_prefetch(c + line, 1, 3);
    if (!g.residual) continue;
    const float* residual = static_cast<const float*>(g.residual) + r * g.residual_stride + output;
    for (std::int64_t line = 0; line < kWidth; line += 16) hwy::Prefetch(residual + line);
  }
}

constexpr std::int64_t kLine = 64;
constexpr std::int64_t kNearWeights = 1 << 16;  // floats that L2 keeps from block to block

// Which lines are fetched ahead by each tile of a block: in the last tiles what the caller reads next, before them the next panel of weights,
// where all panels together are more than L2 keeps.
class Schedule {
 public:
  Schedule(const GemmBlock& g, std::int64_t tiles)
      : g_(g), tiles_(tiles), groups_(g.segments * (g.segment_depth / 4)), panel_bytes_(g.segments * g.segment_depth * kWidth * 4) {
    if (groups_ == 0) return;
    const std::int64_t step = (panel_bytes_ + tiles * groups_ - 1) / (tiles * groups_);
    if (panel_bytes_ / kWidth * g.outputs > kNearWeights * 4 && step <= kLine) weights_step_ = step;
    const std::int64_t all = tiles * (g.last_panel - g.first_panel), of_tile = groups_ * kLine;
    next_from_ = all - std::min(all, (g.next_bytes + of_tile - 1) / of_tile);
  }
  Ahead of(std::int64_t panel, std::int64_t tile) const {
    const std::int64_t at = (panel - g_.first_panel) * tiles_ + tile - next_from_;
    if (groups_ > 0 && at >= 0) return {static_cast<const char*>(g_.next) + at * groups_ * kLine, kLine};
    const std::int64_t next = weights_step_ == 0 ? panel : panel + 1 < g_.last_panel ? panel + 1 : g_.first_panel;
    return {reinterpret_cast<const char*>(g_.packed) + next * panel_bytes_ + tile * groups_ * weights_step_, weights_step_};
  }

 private:
  const GemmBlock& g_;
  const std::int64_t tiles_, groups_;  // groups: of four steps of k
  const std::int64_t panel_bytes_;
  std::int64_t weights_step_ = 0, next_from_ = 0;
};

RowExit exit_of(const GemmBlock& g, std::int64_t row, std::int64_t output) {
  const auto unit = static_cast<std::int64_t>(size_of(g.type)), at = (row * g.residual_stride + output) * unit;
  return {.type = g.type,
          .residual = g.residual ? static_cast<const std::byte*>(g.residual) + at : nullptr,
          .residual_stride = g.residual_stride,
          .c = static_cast<std::byte*>(g.c) + (row * g.c_stride + output) * unit,
          .c_stride = g.c_stride,
          .activation = g.activation};
}

struct Panel {
  alignas(64) float bias[kWidth];
  alignas(64) float c[kTileRows * kWidth];
};

void run_panel(const GemmBlock& g, std::int64_t panel, Panel& local) {
  const std::int64_t output = panel * kWidth, count = std::min(kWidth, g.outputs - output);
  std::fill(local.bias, local.bias + kWidth, 0.0f);
  if (g.bias) std::copy_n(g.bias + output, count, local.bias);
  const bool direct = g.type == DType::kF32 && count == kWidth && is_clamp(g.activation);
  const std::int64_t tiles = (g.rows + static_cast<std::int64_t>(kTileRows) - 1) / static_cast<std::int64_t>(kTileRows);
  const float* strided[kTileRows];
  Tile t{.rows = nullptr, .row_step = g.rows, .segments = g.segments, .depth = g.segment_depth};
  t.b = g.packed + panel * g.segments * g.segment_depth * kWidth;
  t.bias = local.bias;
  t.lower = direct ? lower_bound(g.activation) : -std::numeric_limits<float>::infinity();
  t.upper = direct ? upper_bound(g.activation) : std::numeric_limits<float>::infinity();
  const Schedule schedule(g, tiles);
  for (std::int64_t i = 0; i < tiles; ++i) {  // rows spread evenly: no tile is much thinner than the others
    const std::int64_t row = g.rows * i / tiles, rows = g.rows * (i + 1) / tiles - row;
    if (g.table) {
      t.rows = g.table + row;
    } else {
      for (std::int64_t r = 0; r < rows; ++r) strided[r] = g.a + (row + r) * g.a_stride;
      t.rows = strided;
    }
    t.c = direct ? static_cast<float*>(g.c) + row * g.c_stride + output : local.c;
    t.c_stride = direct ? g.c_stride : kWidth;
    if (direct) {
      fetch(g, row, rows, output);
      t.residual = g.residual ? static_cast<const float*>(g.residual) + row * g.residual_stride + output : nullptr;
      t.residual_stride = g.residual_stride;
    }
    fetch_rows(g, row + rows);
    t.ahead = schedule.of(panel, i);
    choose(static_cast<std::size_t>(rows), std::make_index_sequence<kTileRows>())(t);
    if (!direct) finish_rows(exit_of(g, row, output), local.c, kWidth, rows, count);
  }
}

void run(const GemmBlock& g) {
  Panel local;
  for (std::int64_t p = g.first_panel; p < g.last_panel; ++p) run_panel(g, p, local);
}

std::int64_t width() { return kWidth; }
std::int64_t tile_rows() { return static_cast<std::int64_t>(kTileRows); }

}  // namespace
}  // namespace tandem::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem {
HWY_EXPORT(run);
HWY_EXPORT(width);
HWY_EXPORT(tile_rows);

std::int64_t gemm_panel_width() { return HWY_DYNAMIC_DISPATCH(width)(); }
std::int64_t gemm_tile_rows() { return HWY_DYNAMIC_DISPATCH(tile_rows)(); }
void gemm_run(const GemmBlock& g) { HWY_DYNAMIC_DISPATCH(run)(g); }

}  // namespace tandem
#endif
