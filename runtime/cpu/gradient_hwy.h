// Derivatives of elementwise functions, for their backward nodes: f32 arrays vectorised (Highway), doubles in plain loops.
#pragma once

#include "runtime/cpu/map.h"

namespace tandem {

// dx = dy f'(v), where v is the function's result or its argument, as said. `a`, `b`, `c` are the parameters named.
enum class GradientMap : std::uint8_t {
  kAbove,      // dy where v > a, else 0: ReLU of its result
  kLeaky,      // dy where v > 0, else a dy: leaky ReLU of either
  kBetween,    // c dy where a < v < b, else 0: clips of their results
  kOutside,    // dy where |v| > a, else 0: shrinkage of its argument
  kExpResult,  // c dy where v >= 0, else dy (b v + a): (scaled) exponential linear units of their results
  kExp,        // c dy where v >= 0, else dy a e^(b v): the same of their arguments
  kSigmoid,    // dy v (1 - v): of its result
  kTanh,       // dy (1 - v^2): of its result
  // of their arguments
  kHardSwish,
  kSoftsign,
  kErf,
  kSoftplus,
  kGelu,
  kGeluTanh,
  kMish,
  kSwish,  // x sigmoid(a x)
};

struct GradientParams {
  GradientMap kind = GradientMap::kAbove;
  double a = 0, b = 0, c = 0;
};

// A body for map_kernel with operands dy and v. f32: relative error of f'(v) below 2e-6 (absolute where it is near 0 by cancellation).
MapBody gradient_map_f32(GradientParams);
MapBody gradient_map_f64(GradientParams);

}  // namespace tandem
