#include "runtime/cpu/pool_rows.h"

#include "runtime/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/pool_rows.cc"
#include <hwy/foreach_target.h>  // compiles this file once for each instruction set
#include <hwy/highway.h>

#include "runtime/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::HWY_NAMESPACE {
namespace {

struct MaxOf {
  template <class Vector>
  static Vector apply(Vector acc, Vector x) {
    return hn::IfThenElse(hn::Or(hn::Gt(x, acc), hn::IsNaN(x)), x, acc);
  }
};
struct SumOf {
  template <class Vector>
  static Vector apply(Vector acc, Vector x) {
    return hn::Add(acc, x);
  }
};

// A block of channels that lives in registers: four vectors, then one, then halves of it down to a single channel.
template <class Op, class Tag, class T>
std::size_t blocks_of_four(Tag d, const T* const* cells, std::size_t count, std::size_t c, std::size_t channels, bool first, float* acc) {
  const std::size_t n = hn::Lanes(d);
  for (; c + 4 * n <= channels; c += 4 * n) {
    auto a0 = load(d, cells[0] + c), a1 = load(d, cells[0] + c + n), a2 = load(d, cells[0] + c + 2 * n), a3 = load(d, cells[0] + c + 3 * n);
    for (std::size_t i = 1; i < count; ++i) {
      const T* p = cells[i] + c;
      a0 = Op::apply(a0, load(d, p));
      a1 = Op::apply(a1, load(d, p + n));
      a2 = Op::apply(a2, load(d, p + 2 * n));
      a3 = Op::apply(a3, load(d, p + 3 * n));
    }
    if (!first) {
      a0 = Op::apply(hn::LoadU(d, acc + c), a0);
      a1 = Op::apply(hn::LoadU(d, acc + c + n), a1);
      a2 = Op::apply(hn::LoadU(d, acc + c + 2 * n), a2);
      a3 = Op::apply(hn::LoadU(d, acc + c + 3 * n), a3);
    }
    hn::StoreU(a0, d, acc + c);
    hn::StoreU(a1, d, acc + c + n);
    hn::StoreU(a2, d, acc + c + 2 * n);
    hn::StoreU(a3, d, acc + c + 3 * n);
  }
  return c;
}

template <class Op, class Tag, class T>
std::size_t single_blocks(Tag d, const T* const* cells, std::size_t count, std::size_t c, std::size_t channels, bool first, float* acc) {
  const std::size_t n = hn::Lanes(d);
  for (; c + n <= channels; c += n) {
    auto a = load(d, cells[0] + c);
    for (std::size_t i = 1; i < count; ++i) a = Op::apply(a, load(d, cells[i] + c));
    if (!first) a = Op::apply(hn::LoadU(d, acc + c), a);
    hn::StoreU(a, d, acc + c);
  }
  return c;
}

template <class Op, class T>
void rows(const T* const* cells, std::size_t count, std::size_t channels, bool first, float* acc) {
  const hn::ScalableTag<float> full;
  std::size_t c = blocks_of_four<Op>(full, cells, count, 0, channels, first, acc);
  c = single_blocks<Op>(full, cells, count, c, channels, first, acc);
  c = single_blocks<Op>(hn::CappedTag<float, 4>(), cells, count, c, channels, first, acc);
  single_blocks<Op>(hn::CappedTag<float, 1>(), cells, count, c, channels, first, acc);
}

template <class Tag, class T>
std::size_t divide(Tag d, const float* acc, float divisor, std::size_t c, std::size_t channels, T* out) {
  const std::size_t n = hn::Lanes(d);
  for (; c + n <= channels; c += n) store(d, hn::Div(hn::LoadU(d, acc + c), hn::Set(d, divisor)), out + c);
  return c;
}

template <class T>
void divide_all(const float* acc, float divisor, std::size_t channels, T* out) {
  const std::size_t c = divide(hn::ScalableTag<float>(), acc, divisor, 0, channels, out);
  divide(hn::CappedTag<float, 1>(), acc, divisor, c, channels, out);
}

// Calls f(tag, channel) for full vectors of channels, then for halves of them, then one by one.
template <class F>
void channel_blocks(std::size_t channels, F&& f) {
  const hn::ScalableTag<float> full;
  const hn::CappedTag<float, 4> four;
  std::size_t c = 0;
  for (; c + hn::Lanes(full) <= channels; c += hn::Lanes(full)) f(full, c);
  for (; c + hn::Lanes(four) <= channels; c += hn::Lanes(four)) f(four, c);
  for (; c < channels; ++c) f(hn::CappedTag<float, 1>(), c);
}

template <class T>
void where_largest(const T* const* cells, std::size_t count, std::int32_t first, std::size_t channels, float* best, std::int32_t* where) {
  channel_blocks(channels, [&](auto d, std::size_t c) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> whole;
    auto largest = first == 0 ? load(d, cells[0] + c) : hn::LoadU(d, best + c);
    auto at = first == 0 ? hn::Zero(whole) : hn::LoadU(whole, where + c);
    for (std::size_t i = first == 0 ? 1 : 0; i < count; ++i) {
      const auto x = load(d, cells[i] + c);
      const auto larger = hn::Or(hn::Gt(x, largest), hn::AndNot(hn::IsNaN(largest), hn::IsNaN(x)));
      largest = hn::IfThenElse(larger, x, largest);
      at = hn::IfThenElse(hn::RebindMask(whole, larger), hn::Set(whole, first + static_cast<std::int32_t>(i)), at);
    }
    hn::StoreU(largest, d, best + c);
    hn::StoreU(at, whole, where + c);
  });
}

template <class T>
void add_to_largest(float* const* into, std::size_t count, std::int32_t first, std::size_t channels, const std::int32_t* where, const T* dy) {
  channel_blocks(channels, [&](auto d, std::size_t c) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> whole;
    const auto v = load(d, dy + c);
    const auto at = hn::LoadU(whole, where + c);
    for (std::size_t i = 0; i < count; ++i) {
      if (!into[i]) continue;
      const auto here = hn::RebindMask(d, hn::Eq(at, hn::Set(whole, first + static_cast<std::int32_t>(i))));
      hn::StoreU(hn::Add(hn::LoadU(d, into[i] + c), hn::IfThenElseZero(here, v)), d, into[i] + c);
    }
  });
}

template <class T>
void add_to_all(float* const* into, std::size_t count, std::size_t channels, float divisor, const T* dy) {
  channel_blocks(channels, [&](auto d, std::size_t c) HWY_ATTR {
    const auto v = hn::Div(load(d, dy + c), hn::Set(d, divisor));
    for (std::size_t i = 0; i < count; ++i) {
      if (into[i]) hn::StoreU(hn::Add(hn::LoadU(d, into[i] + c), v), d, into[i] + c);
    }
  });
}

void where_f32(const float* const* cells, std::size_t count, std::int32_t first, std::size_t channels, float* best, std::int32_t* where) {
  where_largest(cells, count, first, channels, best, where);
}
void where_bf16(const BFloat16* const* cells, std::size_t count, std::int32_t first, std::size_t channels, float* best, std::int32_t* where) {
  where_largest(cells, count, first, channels, best, where);
}
void add_where_f32(float* const* into, std::size_t count, std::int32_t first, std::size_t channels, const std::int32_t* where, const float* dy) {
  add_to_largest(into, count, first, channels, where, dy);
}
void add_where_bf16(float* const* into, std::size_t count, std::int32_t first, std::size_t channels, const std::int32_t* where, const BFloat16* dy) {
  add_to_largest(into, count, first, channels, where, dy);
}
void add_share_f32(float* const* into, std::size_t count, std::size_t channels, float divisor, const float* dy) {
  add_to_all(into, count, channels, divisor, dy);
}
void add_share_bf16(float* const* into, std::size_t count, std::size_t channels, float divisor, const BFloat16* dy) {
  add_to_all(into, count, channels, divisor, dy);
}

void max_f32(const float* const* cells, std::size_t count, std::size_t channels, bool first, float* acc) {
  rows<MaxOf>(cells, count, channels, first, acc);
}
void sum_f32(const float* const* cells, std::size_t count, std::size_t channels, bool first, float* acc) {
  rows<SumOf>(cells, count, channels, first, acc);
}
void max_bf16(const BFloat16* const* cells, std::size_t count, std::size_t channels, bool first, float* acc) {
  rows<MaxOf>(cells, count, channels, first, acc);
}
void sum_bf16(const BFloat16* const* cells, std::size_t count, std::size_t channels, bool first, float* acc) {
  rows<SumOf>(cells, count, channels, first, acc);
}
void divide_f32(const float* acc, float divisor, std::size_t channels, float* out) { divide_all(acc, divisor, channels, out); }
void divide_bf16(const float* acc, float divisor, std::size_t channels, BFloat16* out) { divide_all(acc, divisor, channels, out); }

}  // namespace
}  // namespace tandem::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem {
HWY_EXPORT(max_f32);
HWY_EXPORT(sum_f32);
HWY_EXPORT(max_bf16);
HWY_EXPORT(sum_bf16);
HWY_EXPORT(where_f32);
HWY_EXPORT(where_bf16);
HWY_EXPORT(add_where_f32);
HWY_EXPORT(add_where_bf16);
HWY_EXPORT(add_share_f32);
HWY_EXPORT(add_share_bf16);
HWY_EXPORT(divide_f32);
HWY_EXPORT(divide_bf16);

void max_rows(const float* const* cells, std::size_t count, std::size_t channels, bool first, float* acc) {
  HWY_DYNAMIC_DISPATCH(max_f32)(cells, count, channels, first, acc);
}
void max_rows(const BFloat16* const* cells, std::size_t count, std::size_t channels, bool first, float* acc) {
  HWY_DYNAMIC_DISPATCH(max_bf16)(cells, count, channels, first, acc);
}
void sum_rows(const float* const* cells, std::size_t count, std::size_t channels, bool first, float* acc) {
  HWY_DYNAMIC_DISPATCH(sum_f32)(cells, count, channels, first, acc);
}
void sum_rows(const BFloat16* const* cells, std::size_t count, std::size_t channels, bool first, float* acc) {
  HWY_DYNAMIC_DISPATCH(sum_bf16)(cells, count, channels, first, acc);
}
void divide_row(const float* acc, float divisor, std::size_t channels, float* out) { HWY_DYNAMIC_DISPATCH(divide_f32)(acc, divisor, channels, out); }
void divide_row(const float* acc, float divisor, std::size_t channels, BFloat16* out) {
  HWY_DYNAMIC_DISPATCH(divide_bf16)(acc, divisor, channels, out);
}
void max_where(const float* const* cells, std::size_t count, std::int32_t first, std::size_t channels, float* best, std::int32_t* where) {
  HWY_DYNAMIC_DISPATCH(where_f32)(cells, count, first, channels, best, where);
}
void max_where(const BFloat16* const* cells, std::size_t count, std::int32_t first, std::size_t channels, float* best, std::int32_t* where) {
  HWY_DYNAMIC_DISPATCH(where_bf16)(cells, count, first, channels, best, where);
}
void add_where(float* const* into, std::size_t count, std::int32_t first, std::size_t channels, const std::int32_t* where, const float* dy) {
  HWY_DYNAMIC_DISPATCH(add_where_f32)(into, count, first, channels, where, dy);
}
void add_where(float* const* into, std::size_t count, std::int32_t first, std::size_t channels, const std::int32_t* where, const BFloat16* dy) {
  HWY_DYNAMIC_DISPATCH(add_where_bf16)(into, count, first, channels, where, dy);
}
void add_share(float* const* into, std::size_t count, std::size_t channels, float divisor, const float* dy) {
  HWY_DYNAMIC_DISPATCH(add_share_f32)(into, count, channels, divisor, dy);
}
void add_share(float* const* into, std::size_t count, std::size_t channels, float divisor, const BFloat16* dy) {
  HWY_DYNAMIC_DISPATCH(add_share_bf16)(into, count, channels, divisor, dy);
}

}  // namespace tandem
#endif
