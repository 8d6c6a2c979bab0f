// Elementwise functions of f32 arrays, vectorised (Highway, chosen at run time by the CPU).
#pragma once

#include "runtime/cpu/map.h"

namespace tandem {

// y = f(x). `a` and `b` are the parameters named.
enum class FloatMap : std::uint8_t {
  kErf,
  kSigmoid,
  kTanh,
  kSoftplus,
  kSoftsign,
  kRelu,
  kLeakyRelu,    // a x below 0
  kElu,          // a (e^x - 1) below 0
  kSelu,         // b x above 0, a b (e^x - 1) elsewhere
  kCelu,         // a (e^(x/a) - 1) below 0
  kGelu,         // x Phi(x)
  kGeluTanh,     // its approximation by tanh
  kMish,         // x tanh(softplus x)
  kSwish,        // x sigmoid(a x)
  kHardSigmoid,  // a x + b, cut to [0, 1]
  kHardSwish,    // x min(max(x + 3, 0), 6) / 6
  kClip,         // min(max(x, a), b); NaN stays NaN
};

// Relative error below 1e-6 of the exact function of the f32 argument (absolute where the result is near 0 by cancellation); infinities
// give the limits, NaN gives NaN. The result of an element does not depend on its place or on n.
MapBody float_map(FloatMap, float a = 0, float b = 0);

}  // namespace tandem
