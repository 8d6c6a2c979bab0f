#include "runtime/cpu/elementwise_hwy.h"

#include <limits>

#include "runtime/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/elementwise_hwy.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using I = hn::RebindToSigned<D>;

HWY_INLINE V constant(float v) { return hn::Set(D(), v); }

// sum of c[i] x^i
template <std::size_t N>
HWY_INLINE V polynomial(V x, const float (&c)[N]) {
  V sum = constant(c[N - 1]);
  for (std::size_t i = N - 1; i-- > 0;) sum = hn::MulAdd(sum, x, constant(c[i]));
  return sum;
}

// e^x = (1 + q) 2^n with |ln(1 + q)| <= ln(2)/2; x is cut to [-104, 89], outside of which e^x is 0 or infinite. Taylor series.
struct ExpParts {
  V q;
  hn::Vec<I> n;
};
HWY_INLINE ExpParts exp_parts(V x) {
  static constexpr float kTerms[] = {1.0f, 1.0f / 2, 1.0f / 6, 1.0f / 24, 1.0f / 120, 1.0f / 720, 1.0f / 5040};
  x = hn::Min(hn::Max(x, constant(-104.0f)), constant(89.0f));
  const V n = hn::Round(hn::Mul(x, constant(1.44269504f)));
  V r = hn::NegMulAdd(n, constant(0.693359375f), x);  // ln 2 in two parts; the first has few bits, so that the product is exact
  r = hn::NegMulAdd(n, constant(-2.12194440e-4f), r);
  return {hn::Mul(r, polynomial(r, kTerms)), hn::ConvertTo(I(), n)};
}
HWY_INLINE V power_of_two(hn::Vec<I> n) { return hn::BitCast(D(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(I(), 127)))); }
HWY_INLINE V keep_nan(V x, V y) { return hn::IfThenElse(hn::Eq(x, x), y, x); }

// In two steps, so that results near both ends of the range come out.
HWY_INLINE V exp_of(V x) {
  const ExpParts p = exp_parts(x);
  const auto half = hn::ShiftRight<1>(p.n);
  return keep_nan(x, hn::Mul(hn::Mul(hn::Add(p.q, constant(1.0f)), power_of_two(half)), power_of_two(hn::Sub(p.n, half))));
}
// e^x - 1 for x <= 80, also near 0.
HWY_INLINE V expm1_of(V x) {
  const ExpParts p = exp_parts(hn::Max(x, constant(-40.0f)));
  const V scale = power_of_two(p.n);
  return keep_nan(x, hn::MulAdd(p.q, scale, hn::Sub(scale, constant(1.0f))));
}
// ln(1 + u) for u in [0, 1]: 2 artanh(u / (2 + u)), Taylor series.
HWY_INLINE V log1p_of(V u) {
  static constexpr float kTerms[] = {2.0f, 2.0f / 3, 2.0f / 5, 2.0f / 7, 2.0f / 9, 2.0f / 11, 2.0f / 13, 2.0f / 15};
  const V z = hn::Div(u, hn::Add(u, constant(2.0f)));
  return hn::Mul(z, polynomial(hn::Mul(z, z), kTerms));
}
HWY_INLINE V tanh_of(V x) {
  const V t = expm1_of(hn::Min(hn::Add(hn::Abs(x), hn::Abs(x)), constant(40.0f)));
  return keep_nan(x, hn::CopySign(hn::Div(t, hn::Add(t, constant(2.0f))), x));
}
HWY_INLINE V sigmoid_of(V x) { return hn::Div(constant(1.0f), hn::Add(constant(1.0f), exp_of(hn::Neg(x)))); }
HWY_INLINE V softplus_of(V x) { return keep_nan(x, hn::Add(hn::Max(x, constant(0.0f)), log1p_of(exp_of(hn::Neg(hn::Abs(x)))))); }
// x tanh(softplus x) = x s / (s + 2) with s = e^x (e^x + 2)
HWY_INLINE V mish_of(V x) {
  const V e = exp_of(hn::Min(x, constant(30.0f))), s = hn::Mul(e, hn::Add(e, constant(2.0f)));
  return keep_nan(x, hn::Mul(hn::Max(x, constant(-104.0f)), hn::Div(s, hn::Add(s, constant(2.0f)))));
}
// erf for |x| <= 1: Maclaurin series, 2/sqrt(pi) (-1)^k / (k! (2k + 1)).
HWY_INLINE V erf_small(V x) {
  static constexpr float kTerms[] = {1.128379167f,    -0.3761263890f,   0.1128379167f,   -0.02686617064f,  0.005223977625f, -8.548327023e-4f,
                                     1.205533298e-4f, -1.492565036e-5f, 1.646211437e-6f, -1.636584469e-7f, 1.480719282e-8f};
  return hn::Mul(x, polynomial(hn::Mul(x, x), kTerms));
}
// 1 - erf for x >= 0.98: e^(-x^2) times a polynomial in 1 / (1 + 0.4 x), fitted to e^(x^2) erfc(x) on [0.98, 9.5] by weighted least squares
// (relative error 2.2e-8).
HWY_INLINE V erfc_large(V x) {
  static constexpr float kTerms[] = {8.646423603e-7f, 0.22560414798f, 0.22692204167f, 0.19760882871f,
                                     0.21641644907f,  0.00278718373f, 0.24831961473f, -0.11792774170f};
  x = hn::Min(x, constant(10.0f));
  const V t = hn::Div(constant(1.0f), hn::MulAdd(x, constant(0.4f), constant(1.0f)));
  return hn::Mul(exp_of(hn::Neg(hn::Mul(x, x))), polynomial(t, kTerms));
}
HWY_INLINE V erf_of(V x) {
  const V size = hn::Abs(x);
  const V large = hn::CopySign(hn::Sub(constant(1.0f), erfc_large(size)), x);
  return keep_nan(x, hn::IfThenElse(hn::Lt(size, constant(1.0f)), erf_small(x), large));
}
// x Phi(x); the lower tail comes from erfc, not from a difference.
HWY_INLINE V gelu_of(V x) {
  const V z = hn::Mul(x, constant(0.70710678f)), size = hn::Abs(z), half = constant(0.5f);
  const V tail = hn::Mul(half, erfc_large(size));
  const V large = hn::IfThenElse(hn::Lt(x, constant(0.0f)), tail, hn::Sub(constant(1.0f), tail));
  const V phi = hn::IfThenElse(hn::Lt(size, constant(1.0f)), hn::MulAdd(half, erf_small(z), half), large);
  return keep_nan(x, hn::Mul(hn::Max(x, constant(-20.0f)), phi));
}
HWY_INLINE V gelu_tanh_of(V x) {
  const V u = hn::Mul(constant(0.79788456f), hn::MulAdd(hn::Mul(constant(0.044715f), hn::Mul(x, x)), x, x));
  // 0.5 x (1 + tanh u) = x sigmoid(2u)
  return keep_nan(x, hn::Mul(hn::Max(x, constant(-20.0f)), sigmoid_of(hn::Add(u, u))));
}
// a x + b, cut to [0, 1]
HWY_INLINE V hard_sigmoid_of(V x, V a, V b) { return keep_nan(x, hn::Min(hn::Max(hn::MulAdd(a, x, b), constant(0.0f)), constant(1.0f))); }

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
      return each(x, y, n, [=](V v) HWY_ATTR { return hn::IfThenElse(hn::Lt(v, zero), hn::Mul(a, expm1_of(hn::Min(hn::Div(v, a), zero))), v); });
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
