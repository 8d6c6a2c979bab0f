// Beside the optimizer step: GradientNorms (weight, gradient, scalars) gives float64 [1, 2], the sum of g^2 and l2 * the sum of w^2 (attribute l2).
// AccumulateGradient (sum, gradient, scalars) and MovingAverage (average, weight, scalars) give operand 0's successor, which may lie in its memory.
#include "runtime/ops/optimizer_step.h"

namespace tandem {
namespace {

struct NormParams {
  float l2;
};

// In eight sums, which are added at the end.
double sum_of_squares(const float* x) {
  double sum[8] = {};
  for (std::int64_t i = 0; i < kStepBlock; i += 8) {
    for (std::int64_t j = 0; j < 8; ++j) sum[j] += static_cast<double>(x[i + j]) * static_cast<double>(x[i + j]);
  }
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

struct Norms {
  double squares = 0, penalty = 0;
};

// out = keep(scalars) * operand 0 + take(scalars) * operand 1.
template <class Keep, class Take>
Kernel running(const CpuContext& c, Keep keep, Take take) {
  const std::int64_t size = c.in[0].size();
  return Kernel::single("plain", step_tasks(size), [=](const KernelArgs& k, int task) {
    const float kept = keep(k.input<float>(2)), taken = take(k.input<float>(2));
    alignas(64) float a[kStepBlock], x[kStepBlock];
    for_each_block(size, task, [&](std::int64_t at, std::int64_t n) {
      load_block(k.input<float>(0) + at, n, a);
      load_block(k.input<float>(1) + at, n, x);
      each_of_block([&a, &x, kept, taken](std::int64_t i) { a[i] = kept * a[i] + taken * x[i]; });
      std::copy_n(a, n, k.output<float>(0) + at);
    });
  });
}

}  // namespace

void infer_gradient_norms(InferContext& c) {
  expect_alike(c, 0, 1);
  expect_scalars(c, 2);
  c.set_output(0, DType::kF64, {1, 2});
  c.set_params(NormParams{c.attributes().real("l2", 0)});
}

Kernel gradient_norms_cpu(CpuContext& c) {
  const std::int64_t size = c.in[0].size();
  const float l2 = c.params<NormParams>().l2;
  const int tasks = step_tasks(size);
  Kernel kernel;
  kernel.implementation = "plain";
  kernel.shared_bytes = static_cast<std::size_t>(tasks) * sizeof(Norms);
  kernel.stages.push_back({tasks, [size, l2](const KernelArgs& k, int task) {
                             Norms sum;
                             alignas(64) float g[kStepBlock], w[kStepBlock];
                             for_each_block(size, task, [&](std::int64_t at, std::int64_t n) {
                               load_block(k.input<float>(1) + at, n, g);
                               if (l2 != 0) load_block(k.input<float>(0) + at, n, w);
                               scale_gradient(g, w, k.input<float>(2)[kGradientScale], l2);
                               sum.squares += sum_of_squares(g);
                               if (l2 != 0) sum.penalty += static_cast<double>(l2) * sum_of_squares(w);
                             });
                             reinterpret_cast<Norms*>(k.shared)[task] = sum;
                           }});
  kernel.stages.push_back({1, [tasks](const KernelArgs& k, int) {
                             Norms total;
                             for (int t = 0; t < tasks; ++t) {
                               total.squares += reinterpret_cast<const Norms*>(k.shared)[t].squares;
                               total.penalty += reinterpret_cast<const Norms*>(k.shared)[t].penalty;
                             }
                             k.output<double>(0)[0] = total.squares;
                             k.output<double>(0)[1] = total.penalty;
                           }});
  return kernel;
}

void infer_running_sum(InferContext& c) {
  expect_alike(c, 0, 1);
  expect_scalars(c, 2);
  c.set_output(0, DType::kF32, c.shape(0));
}

Kernel accumulate_gradient_cpu(CpuContext& c) {
  return running(
      c, [](const float*) { return 1.0f; }, [](const float* s) { return s[kGradientScale]; });
}
Kernel moving_average_cpu(CpuContext& c) {
  return running(
      c, [](const float* s) { return s[kAverageMomentum]; }, [](const float* s) { return 1 - s[kAverageMomentum]; });
}

}  // namespace tandem
