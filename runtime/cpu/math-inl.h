// Functions of vectors of floats for Highway's kernel files, once for each instruction set; relative errors below 1e-6 (absolute where the
// result is near 0 by cancellation). Included after <hwy/foreach_target.h>, like vector-inl.h.
#if defined(TANDEM_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TANDEM_MATH_INL_H
#undef TANDEM_MATH_INL_H
#else
#define TANDEM_MATH_INL_H
#endif

#include <algorithm>

#include "runtime/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::HWY_NAMESPACE {
namespace {

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
// Phi(x), the normal distribution; the lower tail comes from erfc, not from a difference.
HWY_INLINE V normal_of(V x) {
  const V z = hn::Mul(x, constant(0.70710678f)), size = hn::Abs(z), half = constant(0.5f);
  const V tail = hn::Mul(half, erfc_large(size));
  const V large = hn::IfThenElse(hn::Lt(x, constant(0.0f)), tail, hn::Sub(constant(1.0f), tail));
  return hn::IfThenElse(hn::Lt(size, constant(1.0f)), hn::MulAdd(half, erf_small(z), half), large);
}
HWY_INLINE V gelu_of(V x) { return keep_nan(x, hn::Mul(hn::Max(x, constant(-20.0f)), normal_of(x))); }
HWY_INLINE V gelu_tanh_of(V x) {
  const V u = hn::Mul(constant(0.79788456f), hn::MulAdd(hn::Mul(constant(0.044715f), hn::Mul(x, x)), x, x));
  // 0.5 x (1 + tanh u) = x sigmoid(2u)
  return keep_nan(x, hn::Mul(hn::Max(x, constant(-20.0f)), sigmoid_of(hn::Add(u, u))));
}
// a x + b, cut to [0, 1]
HWY_INLINE V hard_sigmoid_of(V x, V a, V b) { return keep_nan(x, hn::Min(hn::Max(hn::MulAdd(a, x, b), constant(0.0f)), constant(1.0f))); }

}  // namespace
}  // namespace tandem::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
