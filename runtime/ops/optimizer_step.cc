// The optimizer step (formulas: runtime/graph/optimizer.h), all float32: SgdStep, RmspropStep, AdamStep, AdagradStep take weight, gradient summed
// over the samples, scalars [kStepScalars], norms [1, 2] (sum of squared gradients to clip by, penalty), slots; give weight and slots. GradientNorms
// (weight, gradient, scalars) gives float64 [1, 2]: sum of g^2, l2 * sum of w^2. AccumulateGradient (sum, gradient, scalars) and MovingAverage
// (average, weight, scalars) give the operand's successor. Outputs may lie in the memory of the operand that they follow: a block is read whole
// before any of it is written. Cut by elements alone.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/cpu/strided.h"
#include "runtime/graph/optimizer.h"
#include "runtime/ops/families.h"

namespace tandem {
namespace {

constexpr std::int64_t kBlock = 512;  // elements computed at a time; blocks are always whole, so that loops are vectorised
constexpr std::size_t kMostSlots = 3;

struct StepParams {
  std::string op;
  std::size_t slots = 0;
  float l2 = 0, rate_factor = 1, decay = 0, coupled_decay = 0, clip_value = 0, clip_norm = 0;
  bool torch = false, nesterov = false, centered = false;
  float momentum = 0, epsilon = 0, rho = 0, one_minus_rho = 0, one_minus_beta1 = 0, one_minus_beta2 = 0;
};

// A block of one array: g is the gradient that the optimizer sees, w the weight after decay and then after the step.
struct Block {
  alignas(64) float g[kBlock], w[kBlock], slot[kMostSlots][kBlock];
  float rate, step_rate, second_root;  // of this array
};

template <class F>
void each(F f) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < kBlock; ++i) f(i);
}

void expect_scalars(InferContext& c, std::size_t operand) {
  if (c.shape(operand) != Shape{static_cast<std::int64_t>(kStepScalars)}) {
    throw InvalidModel(
        fmt::format("operand {} (scalars) must have shape [{}], has {}", operand, std::size_t{kStepScalars}, to_string(c.shape(operand))));
  }
}

// Operands `a` and `b` are float32 of one shape.
void expect_alike(InferContext& c, std::size_t a, std::size_t b) {
  constexpr DType kType[] = {DType::kF32};
  c.expect_dtype(a, kType);
  c.expect_dtype(b, kType);
  if (c.shape(a) != c.shape(b)) {
    throw InvalidModel(fmt::format("operand {} must have the shape {} of operand {}, has {}", b, to_string(c.shape(a)), a, to_string(c.shape(b))));
  }
}

std::size_t slots_of(const StepParams& p) {
  if (p.op == "AdamStep") return 2;
  if (p.op == "AdagradStep") return 1;
  const std::size_t momentum = p.momentum > 0;
  return p.op == "RmspropStep" ? 1 + momentum + p.centered : momentum;
}

void infer_step(InferContext& c) {
  const Attributes& a = c.attributes();
  StepParams p;
  p.op = c.node().op;
  p.l2 = a.real("l2", 0);
  p.rate_factor = a.real("rate_factor", 1);
  p.decay = a.real("decay", 0);
  p.coupled_decay = a.real("coupled_decay", 0);
  p.clip_value = a.real("clip_value", 0);
  p.clip_norm = a.real("clip_norm", 0);
  p.torch = a.integer("torch", 0) != 0;
  p.nesterov = a.integer("nesterov", 0) != 0;
  p.centered = a.integer("centered", 0) != 0;
  p.momentum = a.real("momentum", 0);
  p.epsilon = a.real("epsilon", 0);
  p.rho = a.real("rho", 0);
  p.one_minus_rho = a.real("one_minus_rho", 1 - p.rho);
  p.one_minus_beta1 = a.real("one_minus_beta1", 0);
  p.one_minus_beta2 = a.real("one_minus_beta2", 0);
  p.slots = slots_of(p);
  expect_alike(c, 0, 1);
  expect_scalars(c, 2);
  constexpr DType kNorms[] = {DType::kF64};
  c.expect_dtype(3, kNorms);
  if (c.shape(3) != Shape{1, 2}) throw InvalidModel(fmt::format("operand 3 (norms) must have shape [1, 2], has {}", to_string(c.shape(3))));
  if (c.inputs() != 4 + p.slots || c.outputs() != 1 + p.slots) {
    throw InvalidModel(fmt::format("needs {} operands and {} outputs, has {} and {}", 4 + p.slots, 1 + p.slots, c.inputs(), c.outputs()));
  }
  for (std::size_t s = 0; s < p.slots; ++s) expect_alike(c, 0, 4 + s);
  for (std::size_t i = 0; i <= p.slots; ++i) c.set_output(i, DType::kF32, c.shape(0));
  c.set_params(std::move(p));
}

// ---- the gradient before the step

// By how much the gradients are multiplied. What is not finite makes all of them not a number, as Keras does.
float clip_factor(const StepParams& p, double squares) {
  if (p.clip_norm <= 0) return 1;
  if (!std::isfinite(squares)) return std::numeric_limits<float>::quiet_NaN();
  const double norm = std::sqrt(squares) + (p.torch ? 1e-6 : 0), most = p.clip_norm;
  return norm > most ? static_cast<float>(most / norm) : 1.0f;
}

void load(const float* from, std::int64_t n, float* to) {
  std::copy_n(from, n, to);
  std::fill(to + n, to + kBlock, 0.0f);
}

// g = scale * g + 2 * l2 * w.
void scale_gradient(float* g, const float* w, float scale, float l2) {
  each([=](std::int64_t i) { g[i] *= scale; });
  if (l2 != 0) each([g, w, twice = 2 * l2](std::int64_t i) { g[i] += twice * w[i]; });
}

void prepare(const StepParams& p, Block& b, float factor) {
  float *g = b.g, *w = b.w;
  if (p.clip_value > 0) each([g, most = p.clip_value](std::int64_t i) { g[i] = g[i] < -most ? -most : g[i] > most ? most : g[i]; });
  if (factor != 1) each([=](std::int64_t i) { g[i] *= factor; });
  if (p.coupled_decay != 0) each([g, w, d = p.coupled_decay](std::int64_t i) { g[i] += d * w[i]; });
  if (p.decay != 0) each([w, d = p.decay, rate = b.rate](std::int64_t i) { w[i] -= w[i] * d * rate; });
}

// ---- the steps

void sgd(const StepParams& p, Block& b) {
  float *g = b.g, *w = b.w, *v = b.slot[0];
  const float rate = b.step_rate, m = p.momentum;
  if (m <= 0) return each([=](std::int64_t i) { w[i] -= g[i] * rate; });
  if (p.torch) {
    each([=](std::int64_t i) { v[i] = m * v[i] + g[i]; });
    if (p.nesterov)
      each([=](std::int64_t i) { w[i] -= rate * (g[i] + m * v[i]); });
    else
      each([=](std::int64_t i) { w[i] -= rate * v[i]; });
    return;
  }
  each([=](std::int64_t i) { v[i] = v[i] * m - g[i] * rate; });
  if (p.nesterov)
    each([=](std::int64_t i) { w[i] += v[i] * m - g[i] * rate; });
  else
    each([=](std::int64_t i) { w[i] += v[i]; });
}

void rmsprop(const StepParams& p, Block& b) {
  float *g = b.g, *w = b.w, *v = b.slot[0], *d = b.g;
  const float rho = p.rho, rest = p.one_minus_rho, epsilon = p.epsilon, rate = b.step_rate;
  float* a = b.slot[p.momentum > 0 ? 2 : 1];
  alignas(64) float square[kBlock];  // of the denominator
  float* q = square;
  each([=](std::int64_t i) { v[i] = rho * v[i] + rest * (g[i] * g[i]); });
  if (p.centered) {
    each([=](std::int64_t i) {
      a[i] = rho * a[i] + rest * g[i];
      q[i] = v[i] - a[i] * a[i];
    });
  } else {
    std::copy_n(v, kBlock, q);
  }
  if (p.torch)
    each([=](std::int64_t i) { d[i] = g[i] / (std::sqrt(q[i]) + epsilon); });
  else
    each([=](std::int64_t i) { d[i] = rate * g[i] / std::sqrt(q[i] + epsilon); });
  const float step = p.torch ? rate : 1.0f;
  if (p.momentum <= 0) return each([=](std::int64_t i) { w[i] -= step * d[i]; });
  float* m = b.slot[1];
  each([=, momentum = p.momentum](std::int64_t i) {
    m[i] = momentum * m[i] + d[i];
    w[i] -= step * m[i];
  });
}

void adam(const StepParams& p, Block& b) {
  float *g = b.g, *w = b.w, *m = b.slot[0], *v = b.slot[1];
  each([=, first = p.one_minus_beta1, second = p.one_minus_beta2](std::int64_t i) {
    m[i] += (g[i] - m[i]) * first;
    v[i] += (g[i] * g[i] - v[i]) * second;
  });
  each([=, rate = b.step_rate, root = b.second_root, epsilon = p.epsilon](std::int64_t i) {
    w[i] -= m[i] * rate / (std::sqrt(v[i]) / root + epsilon);
  });
}

void adagrad(const StepParams& p, Block& b) {
  float *g = b.g, *w = b.w, *a = b.slot[0];
  const float epsilon = p.epsilon, rate = b.step_rate;
  each([=](std::int64_t i) { a[i] += g[i] * g[i]; });
  if (p.torch)
    each([=](std::int64_t i) { w[i] -= rate * g[i] / (std::sqrt(a[i]) + epsilon); });
  else
    each([=](std::int64_t i) { w[i] -= rate * g[i] / std::sqrt(a[i] + epsilon); });
}

// Calls f(first, count) for the blocks of a task.
template <class F>
void for_each_block(std::int64_t size, int task, F&& f) {
  const std::int64_t end = std::min(size, (task + 1) * kTaskElements);
  for (std::int64_t at = task * kTaskElements; at < end; at += kBlock) f(at, std::min(kBlock, end - at));
}

int tasks_for(std::int64_t size) { return static_cast<int>(std::max<std::int64_t>(1, (size + kTaskElements - 1) / kTaskElements)); }

using StepFunction = void (*)(const StepParams&, Block&);

template <StepFunction kStep>
Kernel step_cpu(CpuContext& c) {
  const std::int64_t size = c.in[0].size();
  return Kernel::single("plain", tasks_for(size), [p = c.params<StepParams>(), size](const KernelArgs& k, int task) {
    const float* scalars = k.input<float>(2);
    const float factor = clip_factor(p, k.input<double>(3)[0]);
    Block b;
    b.rate = scalars[kRate] * p.rate_factor;
    b.step_rate = scalars[kStepRate] * p.rate_factor;
    b.second_root = scalars[kSecondRoot];
    for_each_block(size, task, [&](std::int64_t at, std::int64_t n) {
      load(k.input<float>(0) + at, n, b.w);
      load(k.input<float>(1) + at, n, b.g);
      for (std::size_t s = 0; s < p.slots; ++s) load(k.input<float>(4 + s) + at, n, b.slot[s]);
      scale_gradient(b.g, b.w, scalars[kGradientScale], p.l2);
      prepare(p, b, factor);
      kStep(p, b);
      if (k.out[0]) std::copy_n(b.w, n, k.output<float>(0) + at);
      for (std::size_t s = 0; s < p.slots; ++s) {
        if (k.out[1 + s]) std::copy_n(b.slot[s], n, k.output<float>(1 + s) + at);
      }
    });
  });
}

// ---- norms

struct NormParams {
  float l2;
};

void infer_norms(InferContext& c) {
  expect_alike(c, 0, 1);
  expect_scalars(c, 2);
  c.set_output(0, DType::kF64, {1, 2});
  c.set_params(NormParams{c.attributes().real("l2", 0)});
}

// In eight sums, which are added at the end.
double sum_of_squares(const float* x) {
  double sum[8] = {};
  for (std::int64_t i = 0; i < kBlock; i += 8) {
    for (std::int64_t j = 0; j < 8; ++j) sum[j] += static_cast<double>(x[i + j]) * static_cast<double>(x[i + j]);
  }
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

struct Norms {
  double squares = 0, penalty = 0;
};

Kernel norms_cpu(CpuContext& c) {
  const std::int64_t size = c.in[0].size();
  const float l2 = c.params<NormParams>().l2;
  const int tasks = tasks_for(size);
  Kernel kernel;
  kernel.implementation = "plain";
  kernel.shared_bytes = static_cast<std::size_t>(tasks) * sizeof(Norms);
  kernel.stages.push_back({tasks, [size, l2](const KernelArgs& k, int task) {
                             Norms sum;
                             alignas(64) float g[kBlock], w[kBlock];
                             for_each_block(size, task, [&](std::int64_t at, std::int64_t n) {
                               load(k.input<float>(1) + at, n, g);
                               if (l2 != 0) load(k.input<float>(0) + at, n, w);
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

// ---- running sums

void infer_running(InferContext& c) {
  expect_alike(c, 0, 1);
  expect_scalars(c, 2);
  c.set_output(0, DType::kF32, c.shape(0));
}

// out = keep(scalars) * operand 0 + take(scalars) * operand 1.
template <class Keep, class Take>
Kernel running(const CpuContext& c, Keep keep, Take take) {
  const std::int64_t size = c.in[0].size();
  return Kernel::single("plain", tasks_for(size), [=](const KernelArgs& k, int task) {
    const float kept = keep(k.input<float>(2)), taken = take(k.input<float>(2));
    alignas(64) float a[kBlock], x[kBlock];
    for_each_block(size, task, [&](std::int64_t at, std::int64_t n) {
      load(k.input<float>(0) + at, n, a);
      load(k.input<float>(1) + at, n, x);
      each([&a, &x, kept, taken](std::int64_t i) { a[i] = kept * a[i] + taken * x[i]; });
      std::copy_n(a, n, k.output<float>(0) + at);
    });
  });
}

Kernel accumulate_cpu(CpuContext& c) {
  return running(
      c, [](const float*) { return 1.0f; }, [](const float* s) { return s[kGradientScale]; });
}
Kernel average_cpu(CpuContext& c) {
  return running(
      c, [](const float* s) { return s[kAverageMomentum]; }, [](const float* s) { return 1 - s[kAverageMomentum]; });
}

OpDef update_op(std::string_view name, std::int16_t inputs, std::int16_t slots, void (*infer)(InferContext&), Kernel (*cpu)(CpuContext&)) {
  OpDef op;
  op.name = name;
  op.min_inputs = inputs;
  op.max_inputs = static_cast<std::int16_t>(inputs + slots);
  op.max_outputs = static_cast<std::int16_t>(1 + slots);
  op.infer = infer;
  op.cpu = cpu;
  op.data_inputs = 0;
  return op;
}

}  // namespace

std::span<const OpDef> optimizer_step_ops() {
  static const OpDef ops[] = {
      update_op("SgdStep", 4, 1, infer_step, step_cpu<sgd>),        update_op("RmspropStep", 4, 3, infer_step, step_cpu<rmsprop>),
      update_op("AdamStep", 4, 2, infer_step, step_cpu<adam>),      update_op("AdagradStep", 4, 1, infer_step, step_cpu<adagrad>),
      update_op("GradientNorms", 3, 0, infer_norms, norms_cpu),     update_op("AccumulateGradient", 3, 0, infer_running, accumulate_cpu),
      update_op("MovingAverage", 3, 0, infer_running, average_cpu),
  };
  return ops;
}

}  // namespace tandem
