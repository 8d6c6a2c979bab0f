// Learning rates as functions of the iteration: batches before this one, 0 for the first, as Keras counts them (also when gradients are
// accumulated). Formulas are Keras 3's, in double; the rate is rounded to float32 once. `plateau` looks at a metric after each epoch and has state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

enum class ScheduleKind { kConstant, kCosine, kStep, kExponential, kPolynomial, kPlateau };

// With t = iteration - warmup_steps and d = decay_steps:
//   warm-up      iteration < warmup_steps: warmup_start + (rate - warmup_start) * iteration / warmup_steps, whatever the kind
//   cosine       rate * ((1 - a) * (1 + cos(pi * min(t, d) / d)) / 2 + a), a = min_rate / rate
//   exponential  rate * factor^(t / d), with staircase factor^floor(t / d)
//   polynomial   (rate - min_rate) * (1 - min(t, d) / d)^power + min_rate
//   step         rate * factor^k, k boundaries lie below the iteration (PiecewiseConstantDecay: boundary b still has the old rate)
// and never below min_rate (constant excepted).
struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double rate = 0.01, min_rate = 0;
  std::int64_t warmup_steps = 0;
  double warmup_start = 0;
  double decay_steps = 1;
  double factor = 0.1;
  bool staircase = false;
  double power = 1;
  std::vector<std::int64_t> boundaries;  // ascending
  // Plateau: epochs without an improvement of more than min_delta before the rate is multiplied by factor, epochs to rest afterwards.
  std::int64_t patience = 10, cooldown = 0;
  double min_delta = 1e-4;
  bool higher_is_better = false;
};

// For plateau: `rate` is what Plateau made of it.
float rate_at(const Schedule&, std::int64_t iteration);

// Keras' ReduceLROnPlateau. The state is plain: checkpoints keep it.
struct PlateauState {
  float rate = 0;
  std::optional<double> best;
  std::int64_t wait = 0, cooldown = 0;
  std::optional<std::int64_t> reductions = 0;  // so far; nothing: a checkpoint of an earlier version does not say
};
// The state before the first epoch.
PlateauState plateau_start(const Schedule&);
// The state under a schedule whose rate was changed: that rate with the reductions so far. True when it is another one than before.
bool plateau_rebase(const Schedule&, PlateauState&);
// Tells the metric of an epoch; true when the rate was reduced. What is no number is no improvement.
bool plateau_observe(const Schedule&, PlateauState&, double metric);

// What a schedule's text leaves open.
struct ScheduleFrame {
  double rate = 0.01, min_rate = 0;
  std::int64_t steps_per_epoch = 1;  // batches
  double epochs = 1;                 // of the whole training, warm-up included
  double warmup_epochs = 0;
  bool higher_is_better = false;  // the monitored metric
};

// Reads "KIND" or "KIND:NAME=VALUE,...":
//   constant
//   cosine          down to min_rate at the end of training
//   step            every=EPOCHS (default a third of the training) or at=EPOCH/EPOCH/... and factor=F (0.1)
//   exponential     every=EPOCHS (2), factor=F (0.94), staircase=0|1 (0)
//   polynomial      power=P (1), down to min_rate at the end of training
//   plateau         factor=F (0.1), patience=EPOCHS (10), delta=D (0.0001), cooldown=EPOCHS (0)
// Throws UsageError naming what is wrong and what there is.
Schedule parse_schedule(std::string_view text, const ScheduleFrame&);

}  // namespace tandem
