#include "runtime/cpu/elementwise_hwy.h"

#include <limits>

#include "runtime/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/elementwise_hwy.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem {
namespace HWY_NAMESPACE {

// The last elements go through a whole vector, so that they see the same instructions as all others.
template <class F>
HWY_INLINE void each(const float* x, float* y, std::size_t n, F f) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, x + i)), d, y + i);
  if (i == n) return;
  HWY_ALIGN float rest[hn::MaxLanes(d)] = {};
  std::copy(x + i, x + n, rest);
  hn::Store(f(hn::Load(d, rest)), d, rest);
  std::copy_n(rest, n - i, y + i);
}
void run_smooth(FloatMap kind, float alpha, float beta, const float* x, float* y, std::size_t n) {
  const V a = constant(alpha), b = constant(beta), zero = constant(0.0f);
  switch (kind) {
    case FloatMap::kErf:
      return each(x, y, n, [](V v) HWY_ATTR { return erf_of(v); });
    case FloatMap::kSigmoid:
      return each(x, y, n, [](V v) HWY_ATTR { return sigmoid_of(v); });
    case FloatMap::kTanh:
      return each(x, y, n, [](V v) HWY_ATTR { return tanh_of(v); });
    case FloatMap::kSoftplus:
      return each(x, y, n, [](V v) HWY_ATTR { return softplus_of(v); });
    case FloatMap::kElu:
      return each(x, y, n, [=](V v) HWY_ATTR { return hn::IfThenElse(hn::Lt(v, zero), hn::Mul(a, expm1_of(hn::Min(v, zero))), v); });
    case FloatMap::kSelu:
      return each(x, y, n, [=](V v) HWY_ATTR { return hn::Mul(b, hn::IfThenElse(hn::Lt(v, zero), hn::Mul(a, expm1_of(hn::Min(v, zero))), v)); });
    case FloatMap::kCelu:
      return each(x, y, n,
                  [=](V v) HWY_ATTR { return hn::IfThenElse(hn::Lt(v, zero), hn::Mul(a, expm1_of(hn::Min(hn::Div(v, a), constant(88.0f)))), v); });
    case FloatMap::kGelu:
      return each(x, y, n, [](V v) HWY_ATTR { return gelu_of(v); });
    case FloatMap::kGeluTanh:
      return each(x, y, n, [](V v) HWY_ATTR { return gelu_tanh_of(v); });
    case FloatMap::kMish:
      return each(x, y, n, [](V v) HWY_ATTR { return mish_of(v); });
    default:  // kSwish; minus infinity times 0 is meant to be 0
      return each(x, y, n, [=](V v) HWY_ATTR {
        return keep_nan(v, hn::Mul(hn::Max(v, constant(std::numeric_limits<float>::lowest())), sigmoid_of(hn::Mul(a, v))));
      });
  }
}

void run_simple(FloatMap kind, float alpha, float beta, const float* x, float* y, std::size_t n) {
  const V a = constant(alpha), b = constant(beta), zero = constant(0.0f), one = constant(1.0f);
  switch (kind) {
    case FloatMap::kSoftsign:
      return each(x, y, n, [=](V v) HWY_ATTR { return hn::Div(v, hn::Add(one, hn::Abs(v))); });
    case FloatMap::kRelu:
      return each(x, y, n, [=](V v) HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(v, zero), v); });
    case FloatMap::kLeakyRelu:
      return each(x, y, n, [=](V v) HWY_ATTR { return hn::IfThenElse(hn::Lt(v, zero), hn::Mul(a, v), v); });
    case FloatMap::kHardSigmoid:
      return each(x, y, n, [=](V v) HWY_ATTR { return hard_sigmoid_of(v, a, b); });
    case FloatMap::kHardSwish:
      return each(x, y, n, [=](V v) HWY_ATTR {  // x + 3 is exact near -3, x / 6 + 1/2 is not
        const V cut = hn::Min(hn::Max(hn::Add(v, constant(3.0f)), zero), constant(6.0f));
        return keep_nan(v, hn::Mul(v, hn::Div(cut, constant(6.0f))));
      });
    default:  // kClip
      return each(x, y, n, [=](V v) HWY_ATTR {
        const V low = hn::IfThenElse(hn::Lt(v, a), a, v);
        return hn::IfThenElse(hn::Gt(low, b), b, low);
      });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tandem
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem {
namespace {

HWY_EXPORT(run_smooth);
HWY_EXPORT(run_simple);

bool is_smooth(FloatMap k) { return k <= FloatMap::kSoftplus || (k >= FloatMap::kElu && k <= FloatMap::kSwish); }

}  // namespace

MapBody float_map(FloatMap kind, float a, float b) {
  return [kind, a, b, smooth = is_smooth(kind)](const void* const* in, void* out, std::int64_t n) {
    const auto* x = static_cast<const float*>(in[0]);
    auto* y = static_cast<float*>(out);
    if (smooth)
      HWY_DYNAMIC_DISPATCH(run_smooth)(kind, a, b, x, y, static_cast<std::size_t>(n));
    else
      HWY_DYNAMIC_DISPATCH(run_simple)(kind, a, b, x, y, static_cast<std::size_t>(n));
  };
}

}  // namespace tandem
#endif  // HWY_ONCE
