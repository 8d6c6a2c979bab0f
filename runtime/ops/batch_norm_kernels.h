// CPU kernels of batch norm in training (batch_norm_training.cc): channels-last and two-dimensional tensors by rows (float, bf16), all
// others element by element in double. Sums over rows go in blocks and tasks that depend on shapes alone, added in their order in double.
#pragma once

#include "runtime/ops/op.h"

namespace tandem {

struct BatchNormTrainingParams {
  float epsilon = 1e-5f;
  bool relu = false;
};

Kernel batch_moments_kernel(CpuContext&);
Kernel batch_norm_training_kernel(CpuContext&);
Kernel batch_norm_grad_sums_kernel(CpuContext&);
Kernel batch_norm_grad_input_kernel(CpuContext&);

}  // namespace tandem
