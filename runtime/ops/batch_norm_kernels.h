// CPU kernels of batch norm in training (batch_norm_training.cc): channels-last and two-dimensional tensors by rows (float, bf16), all
// others element by element in double. Sums over rows go in blocks and tasks that depend on shapes alone, added in their order in double.
#pragma once

#include "runtime/ops/op.h"

namespace tandem {

struct BatchNormTrainingParams {
  float epsilon = 1e-5f;
  bool relu = false;
};

// A tensor as [n, c, s]: batch, channels, everything else. Of rank 1: one channel.
struct ChannelView {
  DType dtype = DType::kNone;
  std::int64_t n = 0, c = 1, s = 1;
  std::int64_t n_step = 0, c_step = 1, s_step = 1;  // in elements
  ChannelView() = default;
  explicit ChannelView(const TensorDesc&);
  std::int64_t at(std::int64_t in, std::int64_t ic, std::int64_t is) const { return in * n_step + ic * c_step + is * s_step; }
  std::int64_t rows() const { return n * s; }
  // Channels are neighbours and rows equally far apart.
  bool by_rows() const { return c_step == 1 && (s == 1 || n_step == s * s_step); }
  std::int64_t pitch() const { return s == 1 ? n_step : s_step; }
};

Kernel batch_moments_kernel(CpuContext&);
Kernel batch_norm_training_kernel(CpuContext&);
Kernel batch_norm_grad_sums_kernel(CpuContext&);
Kernel batch_norm_grad_input_kernel(CpuContext&);

}  // namespace tandem
