// The optimizer step (formulas: runtime/graph/optimizer.h), all float32: SgdStep, RmspropStep, AdamStep, AdagradStep take weight, gradient summed
// over the samples, scalars [kStepScalars], norms [1, 2] (GradientNorms of what is clipped together), slots; give weight and slots. Outputs may lie
// in the memory of the operand that they follow. Cut by elements alone.
#include "runtime/ops/optimizer_step.h"

#include <cmath>
#include <limits>

#include "runtime/ops/families.h"

namespace tandem {
namespace {

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
  alignas(64) float g[kStepBlock], w[kStepBlock], slot[kMostSlots][kStepBlock];
  float rate, step_rate, second_root;  // of this array
};

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

void prepare(const StepParams& p, Block& b, float factor) {
  float *g = b.g, *w = b.w;
  if (p.clip_value > 0) each_of_block([g, most = p.clip_value](std::int64_t i) { g[i] = g[i] < -most ? -most : g[i] > most ? most : g[i]; });
  if (factor != 1) each_of_block([=](std::int64_t i) { g[i] *= factor; });
  if (p.coupled_decay != 0) each_of_block([g, w, d = p.coupled_decay](std::int64_t i) { g[i] += d * w[i]; });
  if (p.decay != 0) each_of_block([w, d = p.decay, rate = b.rate](std::int64_t i) { w[i] -= w[i] * d * rate; });
}

// ---- the steps

void sgd(const StepParams& p, Block& b) {
  float *g = b.g, *w = b.w, *v = b.slot[0];
  const float rate = b.step_rate, m = p.momentum;
  if (m <= 0) return each_of_block([=](std::int64_t i) { w[i] -= g[i] * rate; });
  if (p.torch) {
    each_of_block([=](std::int64_t i) { v[i] = m * v[i] + g[i]; });
    if (p.nesterov)
      each_of_block([=](std::int64_t i) { w[i] -= rate * (g[i] + m * v[i]); });
    else
      each_of_block([=](std::int64_t i) { w[i] -= rate * v[i]; });
    return;
  }
  each_of_block([=](std::int64_t i) { v[i] = v[i] * m - g[i] * rate; });
  if (p.nesterov)
    each_of_block([=](std::int64_t i) { w[i] += v[i] * m - g[i] * rate; });
  else
    each_of_block([=](std::int64_t i) { w[i] += v[i]; });
}

void rmsprop(const StepParams& p, Block& b) {
  float *g = b.g, *w = b.w, *v = b.slot[0], *d = b.g;
  const float rho = p.rho, rest = p.one_minus_rho, epsilon = p.epsilon, rate = b.step_rate;
  float* a = b.slot[p.momentum > 0 ? 2 : 1];
  alignas(64) float square[kStepBlock];  // of the denominator
  float* q = square;
  each_of_block([=](std::int64_t i) { v[i] = rho * v[i] + rest * (g[i] * g[i]); });
  if (p.centered) {
    each_of_block([=](std::int64_t i) {
      a[i] = rho * a[i] + rest * g[i];
      q[i] = v[i] - a[i] * a[i];
    });
  } else {
    std::copy_n(v, kStepBlock, q);
  }
  if (p.torch)
    each_of_block([=](std::int64_t i) { d[i] = g[i] / (std::sqrt(q[i]) + epsilon); });
  else
    each_of_block([=](std::int64_t i) { d[i] = rate * g[i] / std::sqrt(q[i] + epsilon); });
  const float step = p.torch ? rate : 1.0f;
  if (p.momentum <= 0) return each_of_block([=](std::int64_t i) { w[i] -= step * d[i]; });
  float* m = b.slot[1];
  each_of_block([=, momentum = p.momentum](std::int64_t i) {
    m[i] = momentum * m[i] + d[i];
    w[i] -= step * m[i];
  });
}

void adam(const StepParams& p, Block& b) {
  float *g = b.g, *w = b.w, *m = b.slot[0], *v = b.slot[1];
  each_of_block([=, first = p.one_minus_beta1, second = p.one_minus_beta2](std::int64_t i) {
    m[i] += (g[i] - m[i]) * first;
    v[i] += (g[i] * g[i] - v[i]) * second;
  });
  each_of_block([=, rate = b.step_rate, root = b.second_root, epsilon = p.epsilon](std::int64_t i) {
    w[i] -= m[i] * rate / (std::sqrt(v[i]) / root + epsilon);
  });
}

void adagrad(const StepParams& p, Block& b) {
  float *g = b.g, *w = b.w, *a = b.slot[0];
  const float epsilon = p.epsilon, rate = b.step_rate;
  each_of_block([=](std::int64_t i) { a[i] += g[i] * g[i]; });
  if (p.torch)
    each_of_block([=](std::int64_t i) { w[i] -= rate * g[i] / (std::sqrt(a[i]) + epsilon); });
  else
    each_of_block([=](std::int64_t i) { w[i] -= rate * g[i] / std::sqrt(a[i] + epsilon); });
}

using StepFunction = void (*)(const StepParams&, Block&);

template <StepFunction kStep>
Kernel step_cpu(CpuContext& c) {
  const std::int64_t size = c.in[0].size();
  return Kernel::single("plain", step_tasks(size), [p = c.params<StepParams>(), size](const KernelArgs& k, int task) {
    const float* scalars = k.input<float>(2);
    const float factor = clip_factor(p, k.input<double>(3)[0]);
    Block b;
    b.rate = scalars[kRate] * p.rate_factor;
    b.step_rate = scalars[kStepRate] * p.rate_factor;
    b.second_root = scalars[kSecondRoot];
    for_each_block(size, task, [&](std::int64_t at, std::int64_t n) {
      load_block(k.input<float>(0) + at, n, b.w);
      load_block(k.input<float>(1) + at, n, b.g);
      for (std::size_t s = 0; s < p.slots; ++s) load_block(k.input<float>(4 + s) + at, n, b.slot[s]);
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
      update_op("SgdStep", 4, 1, infer_step, step_cpu<sgd>),
      update_op("RmspropStep", 4, 3, infer_step, step_cpu<rmsprop>),
      update_op("AdamStep", 4, 2, infer_step, step_cpu<adam>),
      update_op("AdagradStep", 4, 1, infer_step, step_cpu<adagrad>),
      update_op("GradientNorms", 3, 0, infer_gradient_norms, gradient_norms_cpu),
      update_op("AccumulateGradient", 3, 0, infer_running_sum, accumulate_gradient_cpu),
      update_op("MovingAverage", 3, 0, infer_running_sum, moving_average_cpu),
  };
  return ops;
}

}  // namespace tandem
