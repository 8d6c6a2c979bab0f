// N replicas of a graph that work on one batch: the batch is split, each replica runs its share, the outputs are joined along axis 0 in
// input order. One replica is a group of one; the path is the same. On the CPU the replicas are logical devices on one pool of threads.
//
// Where a graph may be cut along axis 0 (runtime/plan/rows.h) the plan is made for one sample: with enough samples each worker takes
// samples through the whole network, with fewer the workers share each operator's tasks. No bit depends on batch, replicas or threads.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "parallel/split.h"
#include "runtime/cpu/task_pool.h"
#include "runtime/memory/memory.h"
#include "runtime/plan/execute.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/rows.h"
#include "runtime/plan/weights.h"

namespace tandem {

struct GroupOptions {
  int replicas = 1;
  PlanOptions plan;
  bool weights_per_replica = false;  // --weights device: a copy each; else one shared copy
  SplitRule split = SplitRule::kBalanced;
  std::size_t batch_copies = 1, held_bytes = 0;  // the caller's share of memory: copies of a batch's inputs and outputs, and what else it holds
  std::size_t memory_limit = 0;                  // bytes of resident memory of this process; 0: none
};

// What a run will take, in bytes beyond what the process holds before planning. Per group: the replicas share one process.
struct MemoryPrediction {
  std::size_t weights = 0, constants = 0, arenas = 0, scratch = 0, inputs_outputs = 0, reserve = 0;
  std::size_t packing = 0;  // peak while weights are packed, before there are arenas
  std::size_t total() const { return std::max(packing, weights + arenas + scratch) + constants + inputs_outputs + reserve; }
};

// A plan with what belongs to it, for one set of input shapes (the batch left out where the graph is cut).
struct PreparedPlan {
  CutProof cut;
  Plan plan;                                                  // one sample where the graph is cut, else the whole batch
  std::vector<std::shared_ptr<const PackedWeights>> weights;  // one, or one for each replica; empty until a run wants them
};

class ReplicaGroup {
 public:
  // `graph` is shared and never changed; pool and cpu must outlive the group.
  ReplicaGroup(std::shared_ptr<const Graph> graph, GroupOptions options, TaskPool& pool, const CpuInfo& cpu);
  ~ReplicaGroup();

  // Inputs in the graph's order, of the declared types (half precision may also come as float32); outputs in the graph's order and
  // declared types. Any number of threads may call it at once. Throws InvalidData when the inputs do not fit the graph, OutOfMemory before
  // anything ran when the limit would be passed.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs);

  // Makes (or finds) the plan for these input shapes. `values`: graph inputs that steer shapes. Its weights are packed only when asked for: who
  // wants to know what a run would take does not pay for it. The plans of the last 64 different bindings are kept.
  std::shared_ptr<const PreparedPlan> prepare(const InputBinding& binding, bool pack = false);
  // What run() takes for a batch of these shapes.
  MemoryPrediction predict(const PreparedPlan&, const InputBinding& binding) const;

  // Adds up the seconds per step of every following run of this plan (not thread-safe with run()); null stops it.
  void set_profile(StepTimes* times) { times_ = times; }

  const Graph& graph() const { return *graph_; }
  const GroupOptions& options() const { return options_; }
  std::size_t kept_plans() const { return plans_.size(); }  // by binding; not at the same time as prepare() and run()
  // Bytes that the group holds now and held at most.
  const CountedMemory& memory() const { return counted_; }

 private:
  struct KeptPlan {
    std::shared_ptr<PreparedPlan> plan;
    std::uint64_t used = 0;  // when it was asked for last
  };

  // With mutex_ held.
  std::shared_ptr<PreparedPlan> find_plan(const std::string& key);
  std::shared_ptr<PreparedPlan> find_or_make_plan(const InputBinding& binding);
  void keep_plan(const std::string& key, std::shared_ptr<PreparedPlan> plan);

  InputBinding bind(const std::vector<Tensor>& inputs) const;
  void check_limit(const PreparedPlan&, const InputBinding& binding) const;
  void run_batch(const PreparedPlan&, std::int64_t samples, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);
  Buffer take_arena(std::size_t bytes);
  void give_arena(Buffer);

  const std::shared_ptr<const Graph> graph_;
  const GroupOptions options_;
  TaskPool& pool_;
  const CpuInfo& cpu_;
  MappedMemory system_;
  CountedMemory counted_;
  std::vector<std::unique_ptr<WeightStore>> stores_;  // one, or one for each replica
  std::vector<WorkerSpace> spaces_;                   // one for each worker, used by it alone
  std::vector<Buffer> arenas_;                        // likewise
  std::vector<Buffer> free_arenas_;                   // for runs shared by all workers; guarded by mutex_
  std::vector<std::size_t> steering_;
  std::mutex mutex_;
  std::map<std::string, KeptPlan> plans_;  // guarded by mutex_
  std::uint64_t asked_ = 0;                // likewise
  std::size_t resident_before_;            // when the group was made
  StepTimes* times_ = nullptr;
};

}  // namespace tandem
