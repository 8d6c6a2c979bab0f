// A network in training: weights, optimizer state and running statistics, moved on by one batch at a time. Knows no files and no epochs.
#pragma once

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "parallel/shard_group.h"
#include "runtime/graph/optimizer.h"

namespace tandem {

struct TrainerOptions {
  TrainingOptions training;
  std::vector<TrainedParameter> parameters;  // one for each of training.trained
  OptimizerOptions optimizer;
  ShardOptions shards;
  int accumulate = 1;  // batches whose mean gradient makes one update; running statistics move with every batch
  bool unbiased_variance = false;
  // Checkpoints are written between two steps, when activations are gone: their file lies in memory twice while it is made, which the memory limit
  // counts. `saved_beside`: bytes in it besides what is trained and its slots.
  bool saves = false;
  std::size_t saved_beside = 0;
};

struct StepReport {
  double loss = 0;           // mean over the batch plus penalty
  double penalty = 0;        // of L2, with the weights before the update
  double gradient_norm = 0;  // of the whole gradient, before clipping
  bool updated = false;      // false: the gradient was only accumulated
  BatchResult batch;
  bool is_finite() const { return std::isfinite(loss) && std::isfinite(gradient_norm); }
};

class Trainer {
 public:
  // `graph`: imported, before passes. pool and cpu must outlive the trainer.
  Trainer(std::shared_ptr<const Graph> graph, TrainerOptions options, TaskPool& pool, const CpuInfo& cpu);

  // One batch. Throws OutOfMemory before anything ran. Where loss or gradient is not finite (is_finite of the report) nothing is changed; where the
  // sum of accumulated gradients is not, it is dropped.
  StepReport step(const TrainingBatch& batch, float learning_rate);

  // What a step takes beyond what the process held before the trainer was made; runs nothing.
  TrainingPrediction predict(const std::vector<Shape>& inputs);

  // Of L2, with the weights as they are now; `averaged`: with their moving average.
  double penalty(bool averaged = false) const;

  // Names of the parameters that the loss does not depend on; known once a batch was predicted or ran.
  std::vector<std::string> without_gradient() const;

  // Updates so far, and batches accumulated since the last one.
  std::int64_t iteration() const { return iteration_; }
  int accumulated() const { return accumulated_; }

  // The imported graph with the weights and statistics as they are now: until the next step, since the weights are looked at, not copied. `averaged`:
  // with the moving average of the weights (OptimizerOptions::ema).
  Graph trained(bool averaged = false) const;

  // Everything that another trainer with the same options needs to go on bit for bit, in a fixed order.
  struct NamedArray {
    std::string name;  // "momentum/conv1/kernel", "accumulated/conv1/kernel"
    Tensor values;
  };
  struct State {
    std::vector<NamedArray> weights, statistics, slots;
    std::int64_t iteration = 0;
    int accumulated = 0;
  };
  State state() const;  // copies
  // The trainer's own memory: as it is until the next step. `accumulated`: as if so many batches were accumulated, for the names and shapes that
  // restore() expects of such a state.
  State view() const { return view(accumulated_); }
  State view(int accumulated) const;
  // Throws InvalidData naming the array that is missing or has another shape; nothing is changed then.
  void restore(const State&);

  ShardGroup& group() { return *group_; }
  const TrainerOptions& options() const { return options_; }

 private:
  // A graph over the flat arrays, planned.
  struct Elementwise {
    Plan plan;
    std::shared_ptr<const PackedWeights> packed;
    std::size_t first_change = 0;  // step of the plan; those before it only look
  };
  Elementwise planned(const Graph&);
  // False, and no array is changed: the norm is no finite number.
  bool run(const Elementwise&, const std::vector<const void*>& inputs, const std::vector<void*>& outputs, const double& norm);
  bool accumulate(std::int64_t samples, StepReport&);
  bool update(FlatArrays& gradients, const StepScalars&, double& norm, double& penalty);
  Tensor weights_of(std::size_t parameter, bool averaged) const;

  const TrainerOptions options_;
  TaskPool& pool_;
  const CpuInfo& cpu_;
  MappedMemory system_;
  CountedMemory counted_;
  WeightStore store_;
  std::vector<OptimizerSlot> slot_list_;
  Elementwise update_, accumulate_;
  FlatArrays slots_, sums_;  // sums_: of accumulated gradients
  std::vector<WorkerSpace> spaces_;
  Buffer arena_;
  std::unique_ptr<ShardGroup> group_;
  std::int64_t iteration_ = 0;
  int accumulated_ = 0;
};

}  // namespace tandem
