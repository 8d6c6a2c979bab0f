#include "runtime/cpu/gradient_hwy.h"

#include <cmath>

#include "runtime/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/gradient_hwy.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem {
namespace HWY_NAMESPACE {
namespace {

// dx[i] = f(dy[i], v[i]); the last elements go through a whole vector, so that they see the same instructions as all others.
template <class F>
HWY_INLINE void each_pair(const float* dy, const float* v, float* dx, std::size_t n, F f) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, dy + i), hn::LoadU(d, v + i)), d, dx + i);
  if (i == n) return;
  HWY_ALIGN float a[hn::MaxLanes(d)] = {}, b[hn::MaxLanes(d)] = {};
  std::copy(dy + i, dy + n, a);
  std::copy(v + i, v + n, b);
  hn::Store(f(hn::Load(d, a), hn::Load(d, b)), d, a);
  std::copy_n(a, n - i, dx + i);
}

HWY_INLINE V square(V x) { return hn::Mul(x, x); }

// Phi(x) + x phi(x)
HWY_INLINE V gelu_slope(V x) {
  const V density = hn::Mul(constant(0.398942280f), exp_of(hn::Mul(constant(-0.5f), square(x))));
  const V bounded = hn::Min(hn::Max(x, constant(-20.0f)), constant(20.0f));
  return keep_nan(x, hn::MulAdd(bounded, density, normal_of(x)));
}
// s + 2 x u' s (1 - s) with s = sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3)
HWY_INLINE V gelu_tanh_slope(V x) {
  const V k = constant(0.79788456f), bounded = hn::Min(hn::Max(x, constant(-20.0f)), constant(20.0f)), xx = square(bounded);
  const V u = hn::Mul(k, hn::MulAdd(hn::Mul(constant(0.044715f), xx), bounded, bounded));
  const V s = sigmoid_of(hn::Add(u, u)), rest = sigmoid_of(hn::Neg(hn::Add(u, u)));
  const V slope = hn::Mul(k, hn::MulAdd(constant(3 * 0.044715f), xx, constant(1.0f)));
  return keep_nan(x, hn::MulAdd(hn::Mul(hn::Add(bounded, bounded), slope), hn::Mul(s, rest), s));
}
// t + x (1 - t^2) sigmoid(x) with t = tanh(softplus x) = s / (s + 2), s = e^x (e^x + 2): the second factor is 4 e^x (e^x + 1) / (s + 2)^2
HWY_INLINE V mish_slope(V x) {
  const V bounded = hn::Min(hn::Max(x, constant(-104.0f)), constant(20.0f));
  const V e = exp_of(bounded), s = hn::Mul(e, hn::Add(e, constant(2.0f))), q = hn::Add(s, constant(2.0f));
  const V second = hn::Div(hn::Mul(hn::Mul(constant(4.0f), e), hn::Add(e, constant(1.0f))), square(q));
  return keep_nan(x, hn::MulAdd(bounded, second, hn::Div(s, q)));
}
// s + a x s (1 - s) with s = sigmoid(a x); what lies beyond |a x| = 100 adds nothing
HWY_INLINE V swish_slope(V a, V x) {
  const V ax = hn::Min(hn::Max(hn::Mul(a, x), constant(-100.0f)), constant(100.0f));
  const V s = sigmoid_of(ax), rest = sigmoid_of(hn::Neg(ax));
  return keep_nan(x, hn::MulAdd(hn::Mul(ax, s), rest, s));
}
HWY_INLINE V hard_swish_slope(V x) {
  const V third = hn::MulAdd(x, constant(1.0f / 3), constant(0.5f)), one = constant(1.0f);
  const V inner = hn::IfThenElse(hn::Gt(x, constant(3.0f)), one, third);
  return hn::IfThenZeroElse(hn::Lt(x, constant(-3.0f)), inner);
}

void run_smooth(const GradientParams& p, const float* dy, const float* v, float* dx, std::size_t n) {
  const V one = constant(1.0f), a = constant(static_cast<float>(p.a));
  switch (p.kind) {
    case GradientMap::kErf:
      return each_pair(dy, v, dx, n, [](V g, V x) HWY_ATTR { return hn::Mul(g, hn::Mul(constant(1.12837917f), exp_of(hn::Neg(square(x))))); });
    case GradientMap::kSoftplus:
      return each_pair(dy, v, dx, n, [](V g, V x) HWY_ATTR { return hn::Mul(g, sigmoid_of(x)); });
    case GradientMap::kGelu:
      return each_pair(dy, v, dx, n, [](V g, V x) HWY_ATTR { return hn::Mul(g, gelu_slope(x)); });
    case GradientMap::kGeluTanh:
      return each_pair(dy, v, dx, n, [](V g, V x) HWY_ATTR { return hn::Mul(g, gelu_tanh_slope(x)); });
    case GradientMap::kMish:
      return each_pair(dy, v, dx, n, [](V g, V x) HWY_ATTR { return hn::Mul(g, mish_slope(x)); });
    case GradientMap::kSwish:
      return each_pair(dy, v, dx, n, [a](V g, V x) HWY_ATTR { return hn::Mul(g, swish_slope(a, x)); });
    case GradientMap::kHardSwish:
      return each_pair(dy, v, dx, n, [](V g, V x) HWY_ATTR { return hn::Mul(g, hard_swish_slope(x)); });
    default:  // kSoftsign
      return each_pair(dy, v, dx, n, [one](V g, V x) HWY_ATTR { return hn::Div(g, square(hn::Add(one, hn::Abs(x)))); });
  }
}

void run_simple(const GradientParams& p, const float* dy, const float* v, float* dx, std::size_t n) {
  const V zero = constant(0.0f), one = constant(1.0f);
  const V a = constant(static_cast<float>(p.a)), b = constant(static_cast<float>(p.b)), c = constant(static_cast<float>(p.c));
  switch (p.kind) {
    case GradientMap::kAbove:
      return each_pair(dy, v, dx, n, [a](V g, V y) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(y, a), g); });
    case GradientMap::kLeaky:
      return each_pair(dy, v, dx, n, [=](V g, V y) HWY_ATTR { return hn::IfThenElse(hn::Gt(y, zero), g, hn::Mul(a, g)); });
    case GradientMap::kBetween:
      return each_pair(dy, v, dx, n, [=](V g, V y) HWY_ATTR { return hn::IfThenElseZero(hn::And(hn::Gt(y, a), hn::Lt(y, b)), hn::Mul(c, g)); });
    case GradientMap::kOutside:
      return each_pair(dy, v, dx, n, [a](V g, V x) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(hn::Abs(x), a), g); });
    case GradientMap::kExpResult:
      return each_pair(dy, v, dx, n, [=](V g, V y) HWY_ATTR { return hn::Mul(g, hn::IfThenElse(hn::Lt(y, zero), hn::MulAdd(b, y, a), c)); });
    case GradientMap::kExp:
      return each_pair(dy, v, dx, n,
                       [=](V g, V x) HWY_ATTR { return hn::Mul(g, hn::IfThenElse(hn::Lt(x, zero), hn::Mul(a, exp_of(hn::Mul(b, x))), c)); });
    case GradientMap::kSigmoid:
      return each_pair(dy, v, dx, n, [one](V g, V y) HWY_ATTR { return hn::Mul(g, hn::Mul(y, hn::Sub(one, y))); });
    default:  // kTanh
      return each_pair(dy, v, dx, n, [one](V g, V y) HWY_ATTR { return hn::Mul(g, hn::NegMulAdd(y, y, one)); });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tandem
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem {
namespace {

HWY_EXPORT(run_smooth);
HWY_EXPORT(run_simple);

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double mish_slope(double x) {
  const double t = std::tanh(std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))));
  return t + x * (1 - t * t) * sigmoid(x);
}
double gelu_tanh_slope(double x) {
  const double k = std::sqrt(2 / M_PI), s = sigmoid(2 * k * (x + 0.044715 * x * x * x));
  return s + 2 * x * k * (1 + 3 * 0.044715 * x * x) * s * (1 - s);
}

double slope(const GradientParams& p, double v) {
  switch (p.kind) {
    case GradientMap::kAbove:
      return v > p.a ? 1 : 0;
    case GradientMap::kLeaky:
      return v > 0 ? 1 : p.a;
    case GradientMap::kBetween:
      return v > p.a && v < p.b ? p.c : 0;
    case GradientMap::kOutside:
      return std::abs(v) > p.a ? 1 : 0;
    case GradientMap::kExpResult:
      return v < 0 ? p.b * v + p.a : p.c;
    case GradientMap::kExp:
      return v < 0 ? p.a * std::exp(p.b * v) : p.c;
    case GradientMap::kSigmoid:
      return v * (1 - v);
    case GradientMap::kTanh:
      return 1 - v * v;
    case GradientMap::kHardSwish:
      return v < -3 ? 0 : v > 3 ? 1 : v / 3 + 0.5;
    case GradientMap::kSoftsign:
      return 1 / ((1 + std::abs(v)) * (1 + std::abs(v)));
    case GradientMap::kErf:
      return 2 / std::sqrt(M_PI) * std::exp(-v * v);
    case GradientMap::kSoftplus:
      return sigmoid(v);
    case GradientMap::kGelu:
      return 0.5 * std::erfc(-v * M_SQRT1_2) + v * std::exp(-v * v / 2) / std::sqrt(2 * M_PI);
    case GradientMap::kGeluTanh:
      return gelu_tanh_slope(v);
    case GradientMap::kMish:
      return mish_slope(v);
    case GradientMap::kSwish:
      return sigmoid(p.a * v) * (1 + p.a * v * sigmoid(-p.a * v));
  }
  return 0;
}

}  // namespace

MapBody gradient_map_f32(GradientParams p) {
  return [p, smooth = p.kind >= GradientMap::kHardSwish](const void* const* in, void* out, std::int64_t n) {
    const auto *dy = static_cast<const float*>(in[0]), *v = static_cast<const float*>(in[1]);
    auto* dx = static_cast<float*>(out);
    if (smooth)
      HWY_DYNAMIC_DISPATCH(run_smooth)(p, dy, v, dx, static_cast<std::size_t>(n));
    else
      HWY_DYNAMIC_DISPATCH(run_simple)(p, dy, v, dx, static_cast<std::size_t>(n));
  };
}

MapBody gradient_map_f64(GradientParams p) {
  return [p](const void* const* in, void* out, std::int64_t n) {
    const auto *dy = static_cast<const double*>(in[0]), *v = static_cast<const double*>(in[1]);
    auto* dx = static_cast<double*>(out);
    for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i] * slope(p, v[i]);
  };
}

}  // namespace tandem
#endif  // HWY_ONCE
