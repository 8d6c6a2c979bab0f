// The optimizer step is a graph like any other: elementwise nodes over the flat float32 arrays, planned and run on the CPU's pool.
//
// Formulas are Keras 3's (convention kKeras) or torch 2's (kTorch), for the gradient g = scale * (sum over the samples) + 2 * l2 * w:
//   clipping  by value, by the norm of each array, or by the norm of all of them; torch adds 1e-6 to the norm
//   decay     Keras and AdamW: w -= rate * decay * w before the step; torch's others: g += decay * w, after clipping
//   SGD       v = m*v - rate*g, w += v, Nesterov w += m*v - rate*g;  torch: v = m*v + g, w -= rate*v, Nesterov w -= rate*(g + m*v)
//   RMSprop   v = rho*v + (1-rho)*g^2, centered a = rho*a + (1-rho)*g; d = rate*g / sqrt(v - a^2 + epsilon); with momentum b = m*b + d,
//             w -= b, else w -= d;  torch: epsilon outside of the root, the rate outside of b
//   Adam      m += (g-m)*(1-b1), v += (g^2-v)*(1-b2), w -= rate*sqrt(1-b2^t)/(1-b1^t) * m/(sqrt(v) + epsilon);
//             torch: w -= rate/(1-b1^t) * m/(sqrt(v)/sqrt(1-b2^t) + epsilon)
//   Adagrad   a += g^2, w -= rate*g / sqrt(a + epsilon);  torch: epsilon outside of the root
//   average   e = ema*e + (1-ema)*w of the new w (Keras: e = w after the first step)
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace tandem {

enum class OptimizerKind { kSgd, kRmsprop, kAdam, kAdamW, kAdagrad };
enum class OptimizerConvention { kKeras, kTorch };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kSgd;
  OptimizerConvention convention = OptimizerConvention::kKeras;
  double momentum = 0;  // SGD, RMSprop; 0: no slot for it
  bool nesterov = false;
  double rho = 0.9;
  bool centered = false;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-7;
  double accumulator = 0.1;                                    // Adagrad's start
  double weight_decay = 0;                                     // of arrays with TrainedParameter::decays
  double clip_value = 0, clip_norm = 0, global_clip_norm = 0;  // 0: off; at most one of them
  double ema = 0;                                              // 0: no moving average of the weights
};

// Options and rate that the frameworks take when nothing else is said. `name`: sgd, momentum, nesterov (SGD with momentum 0.9), rmsprop, adam,
// adamw, adagrad. Throws UsageError with the names there are.
OptimizerOptions default_optimizer(std::string_view name, OptimizerConvention convention);
double default_rate(OptimizerKind kind, OptimizerConvention convention);
// Throws UsageError naming the option that is out of its range or contradicts another.
void check(const OptimizerOptions&);

struct TrainedParameter {
  std::string name;
  Shape shape;
  double rate_factor = 1;  // times the learning rate, decay included
  double l2 = 0;           // adds l2 * sum(w^2) to the objective
  bool decays = true;
};

// State of the optimizer: one array for each parameter and slot name. Keras' names in both conventions: momentum (SGD; RMSprop; Adam's first
// moment), velocity (RMSprop, Adam), average_gradient, accumulator, and average (ema).
struct OptimizerSlot {
  std::string name;
  std::size_t parameter = 0;
  Shape shape;
  float initial = 0;
  bool starts_at_weight = false;  // instead of `initial`
};

struct UpdateGraph {
  // Inputs: weights, gradients (one of each for every parameter), slots, scalars [kStepScalars]. Outputs: weights, slots, norm, penalty.
  // Weights and slots go where the caller says; that may be the inputs' own memory. norm, float64 [1]: of all gradients g, before clipping;
  // penalty, float64 [1]: sum of l2 * w^2 over the old weights. Both are there before the first array changes: nodes for which changes_arrays() holds
  // stand behind all others.
  Graph graph;
  std::vector<OptimizerSlot> slots;  // all of one name, in the order of the parameters, then those of the next
};

UpdateGraph make_update_graph(std::span<const TrainedParameter>, const OptimizerOptions&);

// For gradients of several batches. Inputs: weights, gradients, accumulators, scalars (only the gradient's scale is read). Outputs:
// accumulators += scale * gradient (may be the inputs' memory), norm and penalty of this batch as above. The update graph then takes the
// accumulators as gradients, with a scale of 1 / batches.
Graph make_accumulate_graph(std::span<const TrainedParameter>);

// An operator of these graphs that writes weights, slots or accumulators.
bool changes_arrays(std::string_view op);

// What changes from step to step, as the last input of these graphs.
enum StepScalar : std::size_t { kGradientScale, kRate, kStepRate, kSecondRoot, kAverageMomentum, kStepScalars };
using StepScalars = std::array<float, kStepScalars>;

// `iteration`: updates before this one. `scale`: 1 / samples, or 1 / batches where they were accumulated. As Keras does, the powers of Adam's
// betas are those of the betas rounded to float32.
StepScalars step_scalars(const OptimizerOptions&, float learning_rate, std::int64_t iteration, double scale);

}  // namespace tandem
