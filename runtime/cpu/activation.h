// The activations that convolutions and products apply to their results, as data. Scalar definitions; the vector forms
// (activation_rows.cc) follow them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

namespace tandem {

enum class ActivationKind : std::uint8_t { kNone, kRelu, kClip, kLeakyRelu, kElu, kSigmoid, kHardSigmoid, kSwish, kHardSwish, kTanh, kMish };

struct Activation {
  ActivationKind kind = ActivationKind::kNone;
  float alpha = 0, beta = 0;  // kClip: bounds; kLeakyRelu, kElu: slope; kHardSigmoid: max(0, min(1, alpha * x + beta))
  explicit operator bool() const { return kind != ActivationKind::kNone; }
};

// kNone, kRelu and kClip are a clamp to [lower, upper]; NaN stays NaN.
inline bool is_clamp(const Activation& a) { return a.kind <= ActivationKind::kClip; }
inline float lower_bound(const Activation& a) {
  if (a.kind == ActivationKind::kRelu) return 0;
  return a.kind == ActivationKind::kClip ? a.alpha : -std::numeric_limits<float>::infinity();
}
inline float upper_bound(const Activation& a) { return a.kind == ActivationKind::kClip ? a.beta : std::numeric_limits<float>::infinity(); }

// T: float or double.
template <class T>
T activate(const Activation& a, T x) {
  const T alpha = static_cast<T>(a.alpha), beta = static_cast<T>(a.beta);
  switch (a.kind) {
    case ActivationKind::kNone:
      return x;
    case ActivationKind::kRelu:
      return x < 0 ? T(0) : x;
    case ActivationKind::kClip:
      x = x < alpha ? alpha : x;
      return x > beta ? beta : x;
    case ActivationKind::kLeakyRelu:
      return x < 0 ? alpha * x : x;
    case ActivationKind::kElu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case ActivationKind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case ActivationKind::kHardSigmoid:
      x = alpha * x + beta;
      return x < 0 ? T(0) : (x > 1 ? T(1) : x);
    case ActivationKind::kSwish:
      return x / (1 + std::exp(-x));
    case ActivationKind::kHardSwish: {
      const T gate = x + 3;
      return x * ((gate < 0 ? T(0) : (gate > 6 ? T(6) : gate)) / 6);
    }
    case ActivationKind::kTanh:
      return std::tanh(x);
    case ActivationKind::kMish:
      return x * std::tanh(x > 20 ? x : std::log1p(std::exp(x)));
  }
  return x;
}

// "none" "relu" "clip" "leaky_relu" "elu" "sigmoid" "hard_sigmoid" "swish" "hard_swish" "tanh" "mish"; false when unknown.
bool activation_of(std::string_view name, ActivationKind& kind);

}  // namespace tandem
