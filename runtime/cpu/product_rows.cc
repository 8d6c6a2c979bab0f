#include "runtime/cpu/product_rows.h"

#include <algorithm>

#include "runtime/cpu/amx.h"
#include "runtime/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/product_rows.cc"
#include <hwy/foreach_target.h>  // first: compiles this file once for each instruction set

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "runtime/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
constexpr std::int64_t kTogether = 1;
template <class T>
void block(const T* from, std::int64_t, float* to, std::int64_t) {
  *to = static_cast<float>(*from);
}
constexpr std::int64_t kColumns = 1;
#else
constexpr std::int64_t kColumns = 4;
using Quad = hn::CappedTag<float, 4>;
using Block = hn::CappedTag<float, 8>;
constexpr std::int64_t kTogether = kLanes >= 8 ? 8 : 4;  // rows of a block

// Four columns of row r, and of row r + 4 in the upper half where there is one.
template <class Tag, class T>
HWY_INLINE hn::Vec<Tag> rows_at(Tag d, const T* from, std::int64_t stride, std::int64_t r) {
  const auto low = load(Quad(), from + r * stride);
  if constexpr (sizeof(hn::Vec<Tag>) == 32)
    return hn::Combine(d, load(Quad(), from + (r + 4) * stride), low);
  else
    return low;
}

// kTogether rows by four columns, transposed in every 128 bits.
template <class T>
HWY_INLINE void block(const T* from, std::int64_t from_stride, float* to, std::int64_t to_stride) {
  const Block d;
  const hn::Repartition<std::uint64_t, Block> pairs;
  const auto r0 = rows_at(d, from, from_stride, 0), r1 = rows_at(d, from, from_stride, 1), r2 = rows_at(d, from, from_stride, 2),
             r3 = rows_at(d, from, from_stride, 3);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1)), low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1)), high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * to_stride);
}
#endif

// Lines of the next block: memory that was not there is waited for once, not at every row.
template <class T>
HWY_INLINE void fetch(const T* from, std::int64_t stride) {
  for (std::int64_t i = 0; i < kTogether; ++i) hwy::Prefetch(from + i * stride);
}

template <class T>
void transpose(const T* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, float* to, std::int64_t to_stride) {
  std::int64_t r = 0;
  for (; r + kTogether <= rows; r += kTogether) {
    const T* row = from + r * from_stride;
    std::int64_t c = 0;
    for (; c + kColumns <= columns; c += kColumns) {
      if (c % 16 == 0) fetch(row + kTogether * from_stride + c, from_stride);
      block(row + c, from_stride, to + c * to_stride + r, to_stride);
    }
    for (; c < columns; ++c) {
      for (std::int64_t i = 0; i < kTogether; ++i) to[c * to_stride + r + i] = static_cast<float>(row[i * from_stride + c]);
    }
  }
  for (; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) to[c * to_stride + r] = static_cast<float>(from[r * from_stride + c]);
  }
}

template <class T>
HWY_INLINE void copy(const T* from, std::int64_t count, float* to) {
  std::int64_t c = 0;
  for (; c + kLanes <= count; c += kLanes) hn::StoreU(load(from + c), D(), to + c);
  for (; c < count; ++c) to[c] = static_cast<float>(from[c]);
}

constexpr std::int64_t kRowsAhead = 12;  // each in a page of its own: the hardware does not fetch ahead

// Whole panels: two vectors each.
template <class T>
void gather_whole(const void* const* from, std::int64_t first, std::int64_t rows, std::int64_t panels, float* to, std::int64_t panel_stride) {
  const D d;
  for (std::int64_t r = 0; r < rows; ++r, to += 2 * kLanes) {
    const T* row = static_cast<const T*>(from[r]);
    const T* ahead = static_cast<const T*>(from[std::min(rows - 1, r + kRowsAhead)]);
    float* panel = to;
    for (std::int64_t p = 0; p < panels; ++p, panel += panel_stride) {
      if (ahead) hwy::Prefetch(ahead + first + p * 2 * kLanes);
      hn::StoreU(row ? load(row + first + p * 2 * kLanes) : hn::Zero(d), d, panel);
      hn::StoreU(row ? load(row + first + (p * 2 + 1) * kLanes) : hn::Zero(d), d, panel + kLanes);
    }
  }
}

template <class T>
void gather(const void* const* from, std::int64_t first, std::int64_t rows, std::int64_t columns, std::int64_t lane, float* to, std::int64_t width,
            std::int64_t panel_stride) {
  if (width == 2 * kLanes && lane == 0 && columns % width == 0) return gather_whole<T>(from, first, rows, columns / width, to, panel_stride);
  for (std::int64_t done = 0; done < columns;) {  // panel by panel
    const std::int64_t count = std::min(width - lane, columns - done);
    float* panel = to + lane;
    for (std::int64_t r = 0; r < rows; ++r, panel += width) {
      if (from[r])
        copy(static_cast<const T*>(from[r]) + first + done, count, panel);
      else
        std::fill(panel, panel + count, 0.0f);
    }
    done += count;
    lane = 0;
    to += panel_stride;
  }
}

// The bits of v rounded to bf16 (nearest even, NaN stays NaN), low halves zero.
template <class U>
HWY_INLINE hn::Vec<U> rounded_bits(U bits, V v) {
  const auto u = hn::BitCast(bits, v), high = hn::Set(bits, 0xffff0000u);
  const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(bits, 1));
  const auto up = hn::Add(hn::Add(u, hn::Set(bits, 0x7fff)), odd);
  return hn::And(high, hn::IfThenElse(hn::RebindMask(bits, hn::IsNaN(v)), hn::Or(u, hn::Set(bits, 0x400000)), up));
}

// Pairs of rows side by side in 32 bits: [line of 32 rows][part][16 columns][pair][column].
void tiles(const float* rows, std::int64_t depth, int parts, BFloat16* panel) {
  const D d;
  const hn::RebindToUnsigned<D> bits;
  auto* to = reinterpret_cast<std::uint32_t*>(panel);
  for (std::int64_t k = 0; k < amx_lines(depth) * kAmxLine; k += 2) {
    for (std::int64_t o = 0; o < kAmxPanel; o += kLanes) {
      const float* row = rows + k * kAmxPanel + o;
      V a = k < depth ? hn::LoadU(d, row) : hn::Zero(d), b = k + 1 < depth ? hn::LoadU(d, row + kAmxPanel) : hn::Zero(d);
      for (int part = 0; part < parts; ++part) {
        const auto first = rounded_bits(bits, a), second = rounded_bits(bits, b);
        hn::StoreU(hn::Or(hn::ShiftRight<16>(first), second), bits, to + amx_index(k, o, part, parts) / 2);
        a = hn::Sub(a, hn::BitCast(d, first));
        b = hn::Sub(b, hn::BitCast(d, second));
      }
    }
  }
}

void transpose_f32(const void* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, float* to, std::int64_t to_stride) {
  transpose(static_cast<const float*>(from), from_stride, rows, columns, to, to_stride);
}
void transpose_bf16(const void* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, float* to, std::int64_t to_stride) {
  transpose(static_cast<const BFloat16*>(from), from_stride, rows, columns, to, to_stride);
}
void gather_f32(const void* const* from, std::int64_t first, std::int64_t rows, std::int64_t columns, std::int64_t lane, float* to,
                std::int64_t width, std::int64_t panel_stride) {
  gather<float>(from, first, rows, columns, lane, to, width, panel_stride);
}
void gather_bf16(const void* const* from, std::int64_t first, std::int64_t rows, std::int64_t columns, std::int64_t lane, float* to,
                 std::int64_t width, std::int64_t panel_stride) {
  gather<BFloat16>(from, first, rows, columns, lane, to, width, panel_stride);
}

}  // namespace
}  // namespace tandem::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem {
HWY_EXPORT(transpose_f32);
HWY_EXPORT(transpose_bf16);
HWY_EXPORT(tiles);
HWY_EXPORT(gather_f32);
HWY_EXPORT(gather_bf16);

void transpose_rows(DType type, const void* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, float* to,
                    std::int64_t to_stride) {
  if (type == DType::kBF16) return HWY_DYNAMIC_DISPATCH(transpose_bf16)(from, from_stride, rows, columns, to, to_stride);
  HWY_DYNAMIC_DISPATCH(transpose_f32)(from, from_stride, rows, columns, to, to_stride);
}
void gather_rows(DType type, const void* const* from, std::int64_t first, std::int64_t rows, std::int64_t columns, std::int64_t lane, float* to,
                 std::int64_t width, std::int64_t panel_stride) {
  if (type == DType::kBF16) return HWY_DYNAMIC_DISPATCH(gather_bf16)(from, first, rows, columns, lane, to, width, panel_stride);
  HWY_DYNAMIC_DISPATCH(gather_f32)(from, first, rows, columns, lane, to, width, panel_stride);
}
void pack_tiles(const float* rows, std::int64_t depth, int parts, BFloat16* panel) { HWY_DYNAMIC_DISPATCH(tiles)(rows, depth, parts, panel); }

}  // namespace tandem
#endif
