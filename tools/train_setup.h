// From the options of `tandem train` to a network that is ready to be trained: head, what is frozen, loss, optimizer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/dataset.h"
#include "parallel/trainer.h"
#include "tools/console.h"
#include "tools/option_set.h"
#include "tools/tandem.h"
#include "tools/targets.h"

namespace tandem::cli {

// Options that say how the network is trained; those that are not given keep the optimizer's own defaults. `bn` and `shards` hold what was
// chosen for them once make_setup() and set_run_options() are through.
struct TrainingFlags {
  std::string optimizer = "rmsprop", convention = "keras", loss = "auto", bn, bn_variance = "population", classes = "auto", head;
  std::optional<double> rate, momentum, rho, beta1, beta2, epsilon, weight_decay;
  double l2 = 0, clip_norm = 0, global_clip_norm = 0, clip_value = 0, ema = 0, dropout = 0;
  bool centered = false, freeze_backbone = false;
  std::int64_t accumulate = 1, shards = 0;
  std::vector<std::string> freeze, train, rate_scales;  // rate_scales: "PATTERN=FACTOR"
};
void declare_training_flags(OptionSet&, TrainingFlags&);

// What the data asks of the network.
struct DataClasses {
  std::vector<std::string> names;     // of classes or values; empty: none
  std::int64_t count = 0;             // classes or values of a target
  std::string loss = {};              // kind (tools/targets.h); empty: by the network's end
  std::optional<TargetFacts> values;  // targets are numbers
};

struct TrainSetup {
  std::shared_ptr<const Graph> graph;  // with its head, its labels and its record
  TrainerOptions options;
  std::vector<std::string> labels;         // in the order of outputs; empty: numbers
  std::int64_t outputs = 0;                // scores of a sample
  bool new_head = false, new_end = false;  // another head, another last activation than the model's
  std::string loss;                        // "categorical", "binary", "mse", "mae"
  double rate = 0;
  std::vector<std::string> frozen;  // parameters that are not trained
};

// `model`: as imported; `seed` draws a new head. Says on the console what it decided. Throws UsageError and Unsupported naming option or node.
TrainSetup make_setup(const Graph& model, const DataClasses& data, TrainingFlags& flags, std::uint64_t seed, const Console& console);

// Precision, passes, shards, split and memory limit of the run.
void set_run_options(TrainSetup&, TrainingFlags&, const RunOptions&, const CpuInfo&);

// Scores that the network gives for a sample; 0 where its shapes do not say.
std::int64_t outputs_of(const Graph&);

// Shell's patterns: * ? [abc].
bool matches(const std::string& pattern, const std::string& text);

}  // namespace tandem::cli
