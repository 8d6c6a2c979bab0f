// NegativeLogLikelihoodLoss (opset 22) and SoftmaxCrossEntropyLoss (opset 13). Scores [N, C, d...], targets [N, d...] in [0, C), weights
// [C]. A target of ignore_index has loss and weight 0; the mean is the sum of the losses divided by the sum of the weights. Sums in double,
// in the order of the targets: no bit depends on layout or threads.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "runtime/cpu/map.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

enum class Reduction { kNone, kSum, kMean };

struct LossParams {
  Reduction reduction;
  std::optional<std::int64_t> ignored;
  bool log_softmax;  // the scores are not logarithms of probabilities yet
};

Reduction read_reduction(const Attributes& a) {
  const std::string name = a.text("reduction", "mean");
  if (name == "none") return Reduction::kNone;
  if (name == "sum") return Reduction::kSum;
  if (name == "mean") return Reduction::kMean;
  throw InvalidModel(fmt::format("attribute reduction must be none, sum or mean, is \"{}\"", name));
}

void infer(InferContext& c) {
  constexpr DType kTargets[] = {DType::kI32, DType::kI64};
  constexpr DType kScores[] = {DType::kF32, DType::kF64};
  c.expect_dtype(0, kScores);
  c.expect_dtype(1, kTargets);
  c.expect_rank(0, 2, 8);
  const Shape& scores = c.shape(0);
  Shape targets = scores;
  targets.erase(targets.begin() + 1);
  if (c.shape(1) != targets) {
    throw InvalidModel(fmt::format("operand 1 (targets) must have shape {} for scores of shape {}, has {}", to_string(targets), to_string(scores),
                                   to_string(c.shape(1))));
  }
  if (c.has_input(2)) {
    c.expect_same_dtype(0, 2);
    if (c.shape(2) != Shape{scores[1]}) {
      throw InvalidModel(
          fmt::format("operand 2 (weights) must have one value for each of the {} classes, has shape {}", scores[1], to_string(c.shape(2))));
    }
  }
  LossParams p{read_reduction(c.attributes()), {}, c.node().op == "SoftmaxCrossEntropyLoss"};
  if (c.attributes().has("ignore_index")) p.ignored = c.attributes().integer("ignore_index");
  c.set_output(0, c.dtype(0), p.reduction == Reduction::kNone ? targets : Shape{});
  c.set_output(1, c.dtype(0), scores);
  c.set_params(p);
}

// What the kernel knows of one node.
struct Loss {
  LossParams params;
  StridedLoop loop;  // over the targets: in their own order, then steps of scores, targets, losses and logarithms
  std::int64_t classes, score_step, log_step;
  bool wide_targets, weights, losses, logs;  // losses: one for each target is written

  std::int64_t target(const KernelArgs& k, std::int64_t i) const { return wide_targets ? k.input<std::int64_t>(1)[i] : k.input<std::int32_t>(1)[i]; }
};

struct Sum {
  double loss = 0, weight = 0;
};

// log(sum(exp x)) in two numbers that are taken from x one after the other: the largest x, and the logarithm of the rest.
template <class T>
std::pair<double, double> log_sum(const T* x, std::int64_t step, std::int64_t n) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::int64_t i = 0; i < n; ++i) top = std::max(top, static_cast<double>(x[i * step]));
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(x[i * step]) - top);
  return {top, std::log(sum)};
}

// Loss and weight of one target; writes the logarithms of the probabilities where they are wanted.
template <class T>
Sum one_target(const Loss& l, const KernelArgs& k, const T* x, std::int64_t target, T* logs) {
  std::pair<double, double> norm{0, 0};
  const bool counts = target != l.params.ignored;
  if (counts && (target < 0 || target >= l.classes)) throw InvalidData(fmt::format("target {} is outside [0, {}]", target, l.classes - 1));
  if (l.params.log_softmax && (counts || logs)) norm = log_sum(x, l.score_step, l.classes);
  const auto log_of = [&](std::int64_t c) { return static_cast<double>(x[c * l.score_step]) - norm.first - norm.second; };
  if (logs) {
    for (std::int64_t c = 0; c < l.classes; ++c) logs[c * l.log_step] = static_cast<T>(log_of(c));
  }
  if (!counts) return {};
  const double weight = l.weights ? static_cast<double>(k.input<T>(2)[target]) : 1;
  return {-log_of(target) * weight, weight};
}

template <class T>
void run_targets(const Loss& l, const KernelArgs& k, int task) {
  Sum sum;
  l.loop.for_each_run(task, [&](const std::int64_t* at, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      T* logs = l.logs ? k.output<T>(1) + at[4] + i * l.loop.step(4) : nullptr;
      const Sum one = one_target(l, k, k.input<T>(0) + at[1] + i * l.loop.step(1), l.target(k, at[2] + i * l.loop.step(2)), logs);
      if (l.losses) k.output<T>(0)[at[3] + i * l.loop.step(3)] = static_cast<T>(one.loss);
      sum.loss += one.loss;
      sum.weight += one.weight;
    }
  });
  reinterpret_cast<Sum*>(k.shared)[task] = sum;
}

// Strides of a tensor without an axis for the classes, seen with one.
std::vector<std::int64_t> with_class_axis(const TensorDesc& d) {
  auto s = d.strides();
  s.insert(s.begin() + 1, 0);
  return s;
}

template <class T>
Kernel kernel(const CpuContext& c) {
  const auto& p = c.params<LossParams>();
  Shape targets = c.in[0].shape;
  const std::int64_t classes = std::exchange(targets[1], 1);
  const std::vector<std::int64_t> none(targets.size(), 0), scores = c.in[0].strides();
  const bool losses = p.reduction == Reduction::kNone && c.has_output(0), logs = c.has_output(1);
  const std::vector<std::int64_t> log_strides = logs ? c.out[1].strides() : none;
  const StridedLoop loop(targets,
                         {row_major_strides(targets), scores, with_class_axis(c.in[1]), losses ? with_class_axis(c.out[0]) : none, log_strides},
                         std::max<std::int64_t>(1, kTaskElements / std::max<std::int64_t>(1, classes)));
  const Loss l{p, loop, classes, scores[1], log_strides[1], c.in[1].dtype == DType::kI64, c.has_input(2), losses, logs};
  Kernel kernel;
  kernel.implementation = "plain";
  kernel.shared_bytes = static_cast<std::size_t>(loop.tasks()) * sizeof(Sum);
  kernel.stages.push_back({loop.tasks(), [l](const KernelArgs& k, int task) { run_targets<T>(l, k, task); }});
  kernel.stages.push_back({1, [p, tasks = loop.tasks(), out = c.out](const KernelArgs& k, int) {
                             for (std::size_t i = 0; i < out.size(); ++i) {
                               if (k.out[i]) zero_gaps(out[i], k.out[i], 0, out[i].size());
                             }
                             if (p.reduction == Reduction::kNone || !k.out[0]) return;
                             Sum whole;
                             for (const Sum& s : std::span(reinterpret_cast<const Sum*>(k.shared), static_cast<std::size_t>(tasks))) {
                               whole.loss += s.loss;
                               whole.weight += s.weight;
                             }
                             *k.output<T>(0) = static_cast<T>(p.reduction == Reduction::kSum ? whole.loss : whole.loss / whole.weight);
                           }});
  return kernel;
}

Kernel cpu(CpuContext& c) { return c.in[0].dtype == DType::kF64 ? kernel<double>(c) : kernel<float>(c); }

// Without reduction a row's losses depend on its scores and targets.
Rows rows(const RowContext& c) {
  const bool both = c.inputs[0].is_batched() && c.inputs[1].is_batched() && c.inputs[0].per_sample == c.inputs[1].per_sample;
  if (!both || (c.inputs.size() > 2 && c.inputs[2].is_batched()) || c.params<LossParams>().reduction != Reduction::kNone) return Rows::mixed();
  return c.inputs[0];
}

}  // namespace

std::span<const OpDef> loss_ops() {
  static const OpDef ops[] = {
      {.name = "NegativeLogLikelihoodLoss", .min_inputs = 2, .max_inputs = 3, .infer = infer, .cpu = cpu, .rows = rows, .layout = LayoutRule::kAny},
      {.name = "SoftmaxCrossEntropyLoss",
       .min_inputs = 2,
       .max_inputs = 3,
       .max_outputs = 2,
       .infer = infer,
       .cpu = cpu,
       .rows = rows,
       .layout = LayoutRule::kAny},
  };
  return ops;
}

}  // namespace tandem
