// LossSum and LossGrad: what training minimises, and its gradient. Operands: prediction [n, C, ...], target (same shape and type, dense numbers),
// weight [n]. Attribute `kind`:
//   categorical                softmax cross-entropy of logits over axis 1, mean over the positions behind it: -sum t log softmax(x)
//   binary                     sigmoid cross-entropy of logits, mean over the outputs of a sample
//   categorical_probabilities  the same two on probabilities, as Keras does: divided by their sum (categorical), then cut to
//   binary_probabilities       [1e-7, 1 - 1e-7], where nothing flows back from what was cut
//   mse, mae                   squared or absolute error, mean over the outputs of a sample
// LossSum gives [1] sum of weight * loss over the samples, float64, and [n] each sample's loss without its weight, of the prediction's type.
// LossGrad gives the gradient of that sum with respect to the prediction. Computed in double, added in the order of the samples.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/cpu/strided.h"
#include "runtime/ops/along_axis.h"
#include "runtime/ops/families.h"

namespace tandem {
namespace {

enum class LossKind { kCategorical, kBinary, kCategoricalProbabilities, kBinaryProbabilities, kMse, kMae };

LossKind read_kind(const Attributes& a) {
  const std::string name = a.text("kind");
  if (name == "categorical") return LossKind::kCategorical;
  if (name == "binary") return LossKind::kBinary;
  if (name == "categorical_probabilities") return LossKind::kCategoricalProbabilities;
  if (name == "binary_probabilities") return LossKind::kBinaryProbabilities;
  if (name == "mse") return LossKind::kMse;
  if (name == "mae") return LossKind::kMae;
  throw InvalidModel(
      fmt::format("attribute kind must be categorical, binary, categorical_probabilities, binary_probabilities, mse or mae, is \"{}\"", name));
}

bool over_classes(LossKind kind) { return kind == LossKind::kCategorical || kind == LossKind::kCategoricalProbabilities; }

void check_operands(InferContext& c) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF64};
  c.expect_dtype(0, kTypes);
  c.expect_same_dtype(0, 1);
  c.expect_same_dtype(0, 2);
  const LossKind kind = read_kind(c.attributes());
  c.expect_rank(0, over_classes(kind) ? 2 : 1, 8);
  const Shape& x = c.shape(0);
  if (c.shape(1) != x) {
    throw InvalidModel(fmt::format("operand 1 (target) must have the prediction's shape {}, has {}", to_string(x), to_string(c.shape(1))));
  }
  if (c.shape(2) != Shape{x[0]}) {
    throw InvalidModel(fmt::format("operand 2 (weight) must have one value for each of the {} samples, has shape {}", x[0], to_string(c.shape(2))));
  }
  c.set_params(kind);
}

void infer_sum(InferContext& c) {
  check_operands(c);
  c.set_output(0, DType::kF64, {1});
  c.set_output(1, c.dtype(0), {c.shape(0)[0]});
}

void infer_grad(InferContext& c) {
  check_operands(c);
  c.set_output(0, c.dtype(0), c.shape(0));
}

// One sample: `outputs` numbers, of which those of one position lie `positions` apart where the loss is over classes.
struct Sample {
  LossKind kind;
  std::int64_t samples, outputs, classes, positions;

  Sample(LossKind loss, const Shape& shape) : kind(loss), samples(shape[0]), outputs(elements(shape) / std::max<std::int64_t>(1, shape[0])) {
    classes = over_classes(kind) ? shape[1] : outputs;
    positions = outputs / std::max<std::int64_t>(1, classes);
  }
  int tasks() const { return static_cast<int>(std::max<std::int64_t>(1, (samples + per_task() - 1) / per_task())); }
  // Calls f(sample) for those of the task.
  template <class F>
  void for_each(int task, F&& f) const {
    for (std::int64_t i = task * per_task(); i < std::min(samples, (task + 1) * per_task()); ++i) f(i);
  }

 private:
  // An exponential costs as much as many additions.
  std::int64_t per_task() const { return std::max<std::int64_t>(1, kTaskElements / 8 / std::max<std::int64_t>(1, outputs)); }
};

// The bounds are Keras' in the type of the numbers.
template <class T>
double least() {
  return static_cast<double>(static_cast<T>(1e-7));
}
template <class T>
double most() {
  return static_cast<double>(static_cast<T>(1 - 1e-7));
}
template <class T>
double cut(double p) {
  return std::min(std::max(p, least<T>()), most<T>());
}
template <class T>
bool is_cut(double p) {
  return p < least<T>() || p > most<T>();
}

template <class T>
double at(const T* x, std::int64_t i) {
  return static_cast<double>(x[i]);
}

double sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }

// sum over the classes of exp(x - largest); gives the largest too.
template <class T>
std::pair<double, double> exponentials(const T* x, std::int64_t step, std::int64_t classes) {
  double top = at(x, 0), sum = 0;
  for (std::int64_t c = 1; c < classes; ++c) top = std::max(top, at(x, c * step));
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(at(x, c * step) - top);
  return {top, sum};
}

template <class T>
double sum_of(const T* x, std::int64_t step, std::int64_t classes) {
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += at(x, c * step);
  return sum;
}

// Loss of one position (categorical). Classes that are no target do not count, whatever their logarithm is.
template <class T>
double position_loss(const Sample& s, const T* x, const T* t) {
  const bool logits = s.kind == LossKind::kCategorical;
  const auto [top, norm] = logits ? exponentials(x, s.positions, s.classes) : std::pair{0.0, sum_of(x, s.positions, s.classes)};
  const double log_norm = logits ? std::log(norm) : 0;
  double loss = 0;
  for (std::int64_t c = 0; c < s.classes; ++c) {
    const double target = at(t, c * s.positions), value = at(x, c * s.positions);
    if (target == 0 && value == value) continue;
    loss += target * (logits ? top - value + log_norm : -std::log(cut<T>(value / norm)));
  }
  return loss;
}

template <class T>
double output_loss(LossKind kind, double x, double t) {
  switch (kind) {
    case LossKind::kBinary:
      return std::max(x, 0.0) - x * t + std::log1p(std::exp(-std::abs(x)));
    case LossKind::kBinaryProbabilities:
      return -(t * std::log(cut<T>(x)) + (1 - t) * std::log(1 - cut<T>(x)));
    case LossKind::kMse:
      return (x - t) * (x - t);
    default:
      return std::abs(x - t);
  }
}

template <class T>
double sample_loss(const Sample& s, const T* x, const T* t) {
  double sum = 0;
  if (over_classes(s.kind)) {
    for (std::int64_t p = 0; p < s.positions; ++p) sum += position_loss(s, x + p, t + p);
    return sum / static_cast<double>(s.positions);
  }
  for (std::int64_t i = 0; i < s.outputs; ++i) sum += output_loss<T>(s.kind, at(x, i), at(t, i));
  return sum / static_cast<double>(s.outputs);
}

// d softmax cross-entropy / dx = softmax(x) * sum(t) - t.
template <class T>
void logits_grad(const Sample& s, const T* x, const T* t, double scale, T* dx) {
  const auto [top, norm] = exponentials(x, s.positions, s.classes);
  const double targets = sum_of(t, s.positions, s.classes);
  for (std::int64_t c = 0; c < s.classes; ++c) {
    const std::int64_t i = c * s.positions;
    dx[i] = static_cast<T>(scale * (std::exp(at(x, i) - top) / norm * targets - at(t, i)));
  }
}

// With q = p / sum(p) and dq the gradient with respect to q: (dq - sum(dq q)) / sum(p).
template <class T>
void probabilities_grad(const Sample& s, const T* p, const T* t, double scale, T* dp) {
  const double norm = sum_of(p, s.positions, s.classes);
  const auto dq = [&](std::int64_t i) {
    const double q = at(p, i) / norm;
    return is_cut<T>(q) ? 0 : -at(t, i) / q;
  };
  double mean = 0;
  for (std::int64_t c = 0; c < s.classes; ++c) mean += dq(c * s.positions) * at(p, c * s.positions) / norm;
  for (std::int64_t c = 0; c < s.classes; ++c) dp[c * s.positions] = static_cast<T>(scale * (dq(c * s.positions) - mean) / norm);
}

template <class T>
double output_grad(LossKind kind, double x, double t) {
  switch (kind) {
    case LossKind::kBinary:
      return sigmoid(x) - t;
    case LossKind::kBinaryProbabilities:
      return is_cut<T>(x) ? 0 : (x - t) / (x * (1 - x));
    case LossKind::kMse:
      return 2 * (x - t);
    default:
      return x == t ? 0 : x > t ? 1 : x < t ? -1 : x - t;  // x - t: not a number
  }
}

template <class T>
void sample_grad(const Sample& s, const T* x, const T* t, double weight, T* dx) {
  if (!over_classes(s.kind)) {
    for (std::int64_t i = 0; i < s.outputs; ++i) {
      dx[i] = static_cast<T>(weight / static_cast<double>(s.outputs) * output_grad<T>(s.kind, at(x, i), at(t, i)));
    }
    return;
  }
  const auto grad = s.kind == LossKind::kCategorical ? logits_grad<T> : probabilities_grad<T>;
  for (std::int64_t p = 0; p < s.positions; ++p) grad(s, x + p, t + p, weight / static_cast<double>(s.positions), dx + p);
}

// A sample without weight (padding) may hold anything: it counts nowhere.
template <class T>
Kernel sum_kernel(const CpuContext& c) {
  const Sample s(c.params<LossKind>(), c.in[0].shape);
  Kernel kernel;
  kernel.implementation = "plain";
  kernel.shared_bytes = static_cast<std::size_t>(s.samples) * sizeof(double);
  kernel.stages.push_back({s.tasks(), [s, each = c.has_output(1)](const KernelArgs& k, int task) {
                             auto* weighted = reinterpret_cast<double*>(k.shared);
                             s.for_each(task, [&](std::int64_t i) {
                               const double loss = sample_loss(s, k.input<T>(0) + i * s.outputs, k.input<T>(1) + i * s.outputs);
                               const double weight = at(k.input<T>(2), i);
                               weighted[i] = weight == 0 ? 0 : weight * loss;
                               if (each && k.out[1]) k.output<T>(1)[i] = static_cast<T>(loss);
                             });
                           }});
  kernel.stages.push_back({1, [s](const KernelArgs& k, int) {
                             const auto* weighted = reinterpret_cast<const double*>(k.shared);
                             double sum = 0;
                             for (std::int64_t i = 0; i < s.samples; ++i) sum += weighted[i];
                             if (k.out[0]) *k.output<double>(0) = sum;
                           }});
  return kernel;
}

template <class T>
Kernel grad_kernel(const CpuContext& c) {
  const Sample s(c.params<LossKind>(), c.in[0].shape);
  return Kernel::single("plain", s.tasks(), [s](const KernelArgs& k, int task) {
    s.for_each(task, [&](std::int64_t i) {
      T* dx = k.output<T>(0) + i * s.outputs;
      const double weight = at(k.input<T>(2), i);
      if (weight == 0)
        std::fill_n(dx, s.outputs, T{0});
      else
        sample_grad(s, k.input<T>(0) + i * s.outputs, k.input<T>(1) + i * s.outputs, weight, dx);
    });
  });
}

Kernel sum_cpu(CpuContext& c) {
  return float_kernel(c, [&](auto tag) { return sum_kernel<decltype(tag)>(c); });
}
Kernel grad_cpu(CpuContext& c) {
  return float_kernel(c, [&](auto tag) { return grad_kernel<decltype(tag)>(c); });
}

}  // namespace

std::span<const OpDef> training_loss_ops() {
  static const OpDef ops[] = {
      {.name = "LossSum", .min_inputs = 3, .max_inputs = 3, .max_outputs = 2, .infer = infer_sum, .cpu = sum_cpu},
      {.name = "LossGrad", .min_inputs = 3, .max_inputs = 3, .infer = infer_grad, .cpu = grad_cpu},
  };
  return ops;
}

}  // namespace tandem
