// The gradients of one batch: the batch is cut in shards, each goes through the training graph, what they computed is added along one fixed tree. No
// bit depends on threads, devices or how many shards are alive at a time. On the CPU the devices share one pool of threads.
//
// Shards run in waves: with synchronised batch norm one wave of all, else as many as there are workers (a power of two, so that a wave is a subtree).
// The shards of a wave run the plan's segments in step; at a segment's end syncs are merged and kept outputs taken.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "parallel/flat_arrays.h"
#include "parallel/split.h"
#include "runtime/cpu/task_pool.h"
#include "runtime/graph/training.h"
#include "runtime/plan/execute.h"

namespace tandem {

struct ShardOptions {
  int shards = 8;
  int devices = 1;                         // each takes consecutive shards; what they did is counted apart, nothing else depends on it
  SplitRule split = SplitRule::kBalanced;  // kKeras: multi_gpu_model's shares
  PlanOptions plan;
  std::size_t memory_limit = 0, held_bytes = 0;  // of resident memory, 0: none; what the caller holds beside
  std::size_t held_per_sample = 0;               // and for each sample of a batch
  std::size_t between_bytes = 0;                 // what the caller takes between two steps, when activations are gone (let_arenas_go())
};

struct TrainingBatch {
  std::vector<Tensor> inputs;       // of the imported graph, samples along axis 0
  Tensor target, weight;            // float32: as the scores; [samples]
  std::int64_t seed = 0, step = 0;  // of what is drawn
};

struct BatchResult {
  std::int64_t samples = 0;
  double loss_sum = 0;  // of weight * loss over the samples
  Tensor prediction;    // the imported graph's first output
};

// What a device did so far.
struct DeviceUse {
  std::int64_t samples = 0;
  double busy_seconds = 0;  // of threads, computing its shards; without merging, packing and the update
};

// What a step takes, in bytes beyond what the process holds before.
struct TrainingPrediction {
  std::size_t weights = 0, gradients = 0, packed = 0, arenas = 0, scratch = 0, batch = 0, reserve = 0;
  std::size_t between = 0;  // in the place of arenas and batch, between two steps
  int live_shards = 0;
  std::size_t kept() const { return weights + gradients + packed + scratch + reserve; }
  std::size_t total() const { return kept() + std::max(arenas + batch, between); }
};

class ShardGroup {
 public:
  // `graph`: imported, before passes. pool and cpu must outlive the group. Throws what make_training_graph throws when the first batch comes.
  ShardGroup(std::shared_ptr<const Graph> graph, TrainingOptions training, ShardOptions options, TaskPool& pool, const CpuInfo& cpu);
  ~ShardGroup();

  // Gradients (sums over the samples of weight * loss) into gradients(); the statistics of the batch wait for update_statistics().
  // Throws OutOfMemory before anything ran, naming the shards that fit, when the limit would be passed.
  BatchResult run(const TrainingBatch& batch);
  // Running statistics of the batch that ran last: old * momentum + new * (1 - momentum).
  void update_statistics(bool unbiased_variance);
  // The weights changed: they are packed again before the next run.
  void weights_changed() { stale_ = true; }

  // Plans for a batch of these input shapes and says what it takes; runs nothing. More is computed again instead of kept when the limit asks for it.
  TrainingPrediction predict(const std::vector<Shape>& inputs);
  const Plan& plan(const std::vector<Shape>& inputs);  // of the largest shard
  // Throws OutOfMemory naming the batch or the shards that fit, when a batch of these shapes would pass the limit.
  void check_limit(const std::vector<Shape>& inputs);
  std::size_t held_before() const { return resident_before_; }  // bytes of the process when the group was made

  // Gives back the memory of the shards' activations until the next batch, for who needs memory between two steps.
  void let_arenas_go() { arenas_.clear(); }

  // Adds up the seconds per step of the largest shard's plan over all shards of that plan in the batches that follow; null stops it.
  void set_profile(StepTimes* times) { times_ = times; }

  // Indices into TrainingOptions::trained of what the loss does not depend on (its gradient is zero); known once a plan was made.
  std::vector<std::size_t> without_gradient() const;
  Recompute recomputed() const { return training_.recompute; }
  const std::vector<DeviceUse>& device_use() const { return device_use_; }

  FlatArrays& weights() { return weights_; }      // in the order of TrainingOptions::trained
  FlatArrays& gradients() { return gradients_; }  // likewise
  struct Statistics {
    RunningStatistics which;
    std::vector<float> mean, variance;
  };
  std::vector<Statistics>& statistics() { return statistics_; }
  const TrainingOptions& training() const { return training_; }
  const std::shared_ptr<const Graph>& graph() const { return graph_; }
  CountedMemory& memory() { return counted_; }

 private:
  struct ShardPlan;
  struct Shard;
  ShardPlan& prepare(const std::vector<Shape>& batch_inputs, std::int64_t samples);
  int wave_size(int shards) const;
  void recompute(Recompute level);
  TrainingPrediction predict_as_is(const std::vector<Shape>& inputs, int shards);
  bool fits(const TrainingPrediction& p, std::size_t spare = 0) const {
    return options_.memory_limit == 0 || resident_before_ + p.total() + spare <= options_.memory_limit;
  }
  std::string what_fits(const std::vector<Shape>& inputs);
  std::vector<Shard> cut(const TrainingBatch& batch, std::span<const std::int64_t> sizes);
  void repack();
  void fit_arenas(std::span<Shard> shards);
  void add(FlatArrays& to, const FlatArrays& from);
  void run_wave(std::span<Shard> shards, FlatArrays& sums, BatchResult& result);
  void run_segment(Shard& shard, std::size_t segment, int worker, bool alone, StepTimes* profile);
  void count_use(std::span<const Shard> shards);
  void merge_syncs(std::span<Shard> shards, std::size_t segment);
  void take_outputs(std::span<Shard> shards, std::size_t segment, FlatArrays& sums, BatchResult& result);
  void add_gradients(std::span<Shard>, std::span<const std::size_t> gradients, FlatArrays& sums);

  const std::shared_ptr<const Graph> graph_;
  TrainingOptions training_;
  const ShardOptions options_;
  TaskPool& pool_;
  const CpuInfo& cpu_;
  MappedMemory system_;
  CountedMemory counted_;
  WeightStore store_;
  std::vector<WorkerSpace> spaces_;
  std::vector<Buffer> arenas_;  // one for each shard of a wave
  std::map<std::string, std::unique_ptr<ShardPlan>> plans_;
  FlatArrays weights_, gradients_;
  std::vector<FlatArrays> spare_;  // for subtrees of waves
  std::vector<Statistics> statistics_;
  std::vector<double> losses_;                            // of each shard of the last batch
  std::vector<std::vector<std::vector<float>>> moments_;  // [statistics][shard][3 * channels], likewise
  std::size_t resident_before_;
  bool stale_ = true;
  StepTimes* times_ = nullptr;
  std::vector<DeviceUse> device_use_;
};

}  // namespace tandem
