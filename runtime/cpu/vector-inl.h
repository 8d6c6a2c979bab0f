// What Highway's kernel files share, once for each instruction set: vectors of floats, loads and stores that convert bf16, clamps.
// Included after <hwy/foreach_target.h>, like Highway's own -inl.h files.
#if defined(TANDEM_VECTOR_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TANDEM_VECTOR_INL_H
#undef TANDEM_VECTOR_INL_H
#else
#define TANDEM_VECTOR_INL_H
#endif

#include <hwy/highway.h>

#include "runtime/base/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr std::int64_t kLanes = HWY_LANES(float);

// Tag: D, or a tag of fewer lanes.
template <class Tag>
HWY_INLINE hn::Vec<Tag> load([[maybe_unused]] Tag d, const float* p) {
  return hn::LoadU(d, p);
}
template <class Tag>
HWY_INLINE hn::Vec<Tag> load(Tag d, const BFloat16* p) {
  const hn::RebindToUnsigned<Tag> bits;
  const hn::Rebind<std::uint16_t, Tag> half;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(p)))));
}
template <class Tag>
HWY_INLINE void store([[maybe_unused]] Tag d, hn::Vec<Tag> v, float* p) {
  hn::StoreU(v, d, p);
}
// Rounds to nearest even and keeps NaN, as BFloat16's constructor.
template <class Tag>
HWY_INLINE void store([[maybe_unused]] Tag d, hn::Vec<Tag> v, BFloat16* p) {
  const hn::RebindToUnsigned<Tag> bits;
  const hn::Rebind<std::uint16_t, Tag> half;
  const auto u = hn::BitCast(bits, v);
  const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(bits, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(u, hn::Set(bits, 0x7fff)), odd));
  const auto quiet = hn::Or(hn::ShiftRight<16>(u), hn::Set(bits, 0x40));
  const auto is_nan = hn::Gt(hn::And(u, hn::Set(bits, 0x7fffffff)), hn::Set(bits, 0x7f800000));
  // The upper halves are zero, so the signed saturating demotion is exact.
  const auto narrowed = hn::BitCast(hn::RebindToSigned<Tag>(), hn::IfThenElse(is_nan, quiet, rounded));
  hn::StoreU(hn::DemoteTo(half, narrowed), half, reinterpret_cast<std::uint16_t*>(p));
}
template <class T>
HWY_INLINE V load(const T* p) {
  return load(D(), p);
}
template <class T>
HWY_INLINE void store(V v, T* p) {
  store(D(), v, p);
}

// The first `count` numbers, zeros behind them; mask: FirstN(count).
HWY_INLINE V load_part(const float* p, hn::Mask<D> mask, std::int64_t) { return hn::MaskedLoad(mask, D(), p); }
HWY_INLINE V load_part(const BFloat16* p, hn::Mask<D>, std::int64_t count) {
  BFloat16 line[kLanes] = {};
  for (std::int64_t i = 0; i < count; ++i) line[i] = p[i];
  return load(line);
}

// Clamps that keep NaN: x86's Max and Min return the second operand where one is NaN, the scalar target's the first.
[[maybe_unused]] HWY_INLINE V at_least(V bound, V v) {
  if constexpr (HWY_TARGET == HWY_SCALAR) return hn::IfThenElse(hn::Lt(v, bound), bound, v);
  return hn::Max(bound, v);
}
[[maybe_unused]] HWY_INLINE V at_most(V bound, V v) {
  if constexpr (HWY_TARGET == HWY_SCALAR) return hn::IfThenElse(hn::Gt(v, bound), bound, v);
  return hn::Min(bound, v);
}

}  // namespace
}  // namespace tandem::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
