// GatherSum: a linear map that is a product over axes, for backward nodes. Along every listed axis element i of the output is the sum of
// weight[k] * operand[index[k]] for k in [first[i], first[i + 1]), in that order. Operands: the data, then first (int64), index (int64) and
// weight (float64) for each of the attribute `axes`; all but the data are known before planning.
#pragma once

#include "runtime/graph/gradient.h"
#include "runtime/ops/resize_passes.h"

namespace tandem {

OpDef gather_sum_op();  // of the gathering family

// The node for these maps (at most 10); the value itself where there are none.
ValueId emit_gather_sum(GradientContext&, ValueId, const std::vector<AxisTaps>&);

// The transposed map: from what the taps' outputs were to `in` elements. Each sum in the order of the former outputs.
ResizeTaps transposed(const ResizeTaps&, std::int64_t in);

}  // namespace tandem
