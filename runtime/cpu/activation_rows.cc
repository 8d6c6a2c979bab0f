#include "runtime/cpu/activation_rows.h"

#include <algorithm>

#include "runtime/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/activation_rows.cc"
#include <hwy/foreach_target.h>  // first: compiles this file once for each instruction set

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "runtime/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::HWY_NAMESPACE {
namespace {

V sigmoid(D d, V x) {
  // exp(88) is near the largest f32; the quotient is then as good as 0.
  const V e = hn::Exp(d, hn::Min(hn::Neg(x), hn::Set(d, 88.0f)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Div(hn::Set(d, 1.0f), hn::Add(hn::Set(d, 1.0f), e)));
}

V apply(D d, const Activation& a, V x) {
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f), alpha = hn::Set(d, a.alpha), beta = hn::Set(d, a.beta);
  switch (a.kind) {
    case ActivationKind::kNone:
      return x;
    case ActivationKind::kRelu:
      return at_least(zero, x);
    case ActivationKind::kClip:
      return at_most(beta, at_least(alpha, x));
    case ActivationKind::kLeakyRelu:
      return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(alpha, x), x);
    case ActivationKind::kElu:
      return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(alpha, hn::Expm1(d, hn::Max(x, hn::Set(d, -88.0f)))), x);
    case ActivationKind::kSigmoid:
      return sigmoid(d, x);
    case ActivationKind::kHardSigmoid:
      return at_most(one, at_least(zero, hn::Add(hn::Mul(alpha, x), beta)));
    case ActivationKind::kSwish:
      return hn::Mul(x, sigmoid(d, x));
    case ActivationKind::kHardSwish: {
      const V gate = at_most(hn::Set(d, 6.0f), at_least(zero, hn::Add(x, hn::Set(d, 3.0f))));
      return hn::Mul(x, hn::Mul(gate, hn::Set(d, 1.0f / 6.0f)));  // x * 6 may overflow
    }
    case ActivationKind::kTanh:
      return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, x));
    case ActivationKind::kMish: {
      const V bounded = hn::Min(x, hn::Set(d, 20.0f));  // tanh of more is 1
      return hn::IfThenElse(hn::IsNaN(x), x, hn::Mul(x, hn::Tanh(d, hn::Log1p(d, hn::Exp(d, hn::Max(bounded, hn::Set(d, -88.0f)))))));
    }
  }
  return x;
}

void activate(const Activation& a, float* data, std::int64_t rows, std::int64_t count, std::int64_t stride) {
  if (!a) return;
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t r = 0; r < rows; ++r) {
    float* row = data + r * stride;
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(apply(d, a, hn::LoadU(d, row + i)), d, row + i);
    if (i == count) continue;
    const auto mask = hn::FirstN(d, static_cast<std::size_t>(count - i));
    hn::BlendedStore(apply(d, a, hn::MaskedLoad(mask, d, row + i)), mask, d, row + i);
  }
}

// A vector's worth at the end of a row, through memory of its own.
template <class T>
struct Tail {
  T line[kLanes] = {};
  Tail() = default;
  Tail(const T* from, std::int64_t count) { std::copy_n(from, count, line); }
};

template <class T>
void finish_typed(const RowExit& e, const float* sums, std::int64_t stride, std::int64_t rows, std::int64_t count) {
  const D d;
  for (std::int64_t r = 0; r < rows; ++r, sums += stride) {
    const T* residual = e.residual ? static_cast<const T*>(e.residual) + r * e.residual_stride : nullptr;
    T* c = static_cast<T*>(e.c) + r * e.c_stride;
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      V v = load(sums + i);
      if (residual) v = hn::Add(v, load(residual + i));
      store(apply(d, e.activation, v), c + i);
    }
    if (i == count) continue;
    V v = load(Tail<float>(sums + i, count - i).line);
    if (residual) v = hn::Add(v, load(Tail<T>(residual + i, count - i).line));
    Tail<T> last;
    store(apply(d, e.activation, v), last.line);
    std::copy_n(last.line, count - i, c + i);
  }
}

void finish(const RowExit& e, const float* sums, std::int64_t stride, std::int64_t rows, std::int64_t count) {
  if (e.type == DType::kBF16) return finish_typed<BFloat16>(e, sums, stride, rows, count);
  finish_typed<float>(e, sums, stride, rows, count);
}

void split(const float* from, BFloat16* parts, std::int64_t part_stride, std::int64_t count) {
  const auto three = [&](V v, BFloat16* to, std::int64_t step) HWY_ATTR {
    for (int p = 0; p < 3; ++p, to += step) {
      store(v, to);
      v = hn::Sub(v, load(to));
    }
  };
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) three(load(from + i), parts + i, part_stride);
  if (i == count) return;
  BFloat16 last[3 * kLanes];
  three(load(Tail<float>(from + i, count - i).line), last, kLanes);
  for (int p = 0; p < 3; ++p) std::copy_n(last + p * kLanes, count - i, parts + p * part_stride + i);
}

void widen(const BFloat16* from, float* to, std::int64_t count, bool relu) {
  const V floor = hn::Set(D(), relu ? 0.0f : -std::numeric_limits<float>::infinity());
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(at_least(floor, load(from + i)), to + i);
  for (; i < count; ++i) {
    const float v = static_cast<float>(from[i]);
    to[i] = relu && v < 0 ? 0.0f : v;
  }
}

void relu(const float* from, float* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(at_least(hn::Zero(D()), load(from + i)), to + i);
  for (; i < count; ++i) to[i] = from[i] < 0 ? 0.0f : from[i];
}

void narrow(const float* from, BFloat16* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(load(from + i), to + i);
  for (; i < count; ++i) to[i] = BFloat16(from[i]);
}

}  // namespace
}  // namespace tandem::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem {
HWY_EXPORT(activate);
HWY_EXPORT(widen);
HWY_EXPORT(relu);
HWY_EXPORT(narrow);
HWY_EXPORT(finish);
HWY_EXPORT(split);

void activate_rows(const Activation& a, float* data, std::int64_t rows, std::int64_t count, std::int64_t stride) {
  HWY_DYNAMIC_DISPATCH(activate)(a, data, rows, count, stride);
}
void finish_rows(const RowExit& e, const float* sums, std::int64_t stride, std::int64_t rows, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(finish)(e, sums, stride, rows, count);
}
void split_row(const float* from, BFloat16* parts, std::int64_t part_stride, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(split)(from, parts, part_stride, count);
}
void widen_row(const BFloat16* from, float* to, std::int64_t count, bool with_relu) { HWY_DYNAMIC_DISPATCH(widen)(from, to, count, with_relu); }
void relu_row(const float* from, float* to, std::int64_t count) { HWY_DYNAMIC_DISPATCH(relu)(from, to, count); }
void narrow_row(const float* from, BFloat16* to, std::int64_t count) { HWY_DYNAMIC_DISPATCH(narrow)(from, to, count); }

}  // namespace tandem
#endif
