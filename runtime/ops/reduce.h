// What the reductions' kernels and their backward rules share.
#pragma once

#include <vector>

#include "runtime/ops/op.h"

namespace tandem {

enum class ReduceKind : std::uint8_t { kMean, kSum, kMax, kMin, kProd, kL1, kL2, kSumSquare, kLogSum, kLogSumExp };

struct ReduceParams {
  ReduceKind kind;
  std::vector<bool> reduced;  // for each dimension of the input
  bool keep;
};

// Equal largest or smallest elements share the gradient; that of ReduceProd is right at zeros too.
void reduce_gradient(GradientContext&);

}  // namespace tandem
