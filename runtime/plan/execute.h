// Runs a plan. Nothing is decided here; memory is taken only where a worker's space grows to fit a new plan.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/cpu/task_pool.h"
#include "runtime/memory/memory.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/weights.h"

namespace tandem {

// What one worker needs beside an arena: scratch and room for pointers. Reused from run to run, grown when a plan needs more.
class WorkerSpace {
 public:
  explicit WorkerSpace(MemoryResource& memory) : memory_(memory) {}
  void fit(const Plan&);
  std::byte* scratch() const { return scratch_.data(); }
  std::vector<const void*> in;
  std::vector<void*> out;

 private:
  MemoryResource& memory_;
  Buffer scratch_;
};

// One run: where its memory lies. `inputs` and `outputs` follow Plan::inputs and Plan::outputs (plain tensors of the caller).
struct Run {
  const Plan* plan = nullptr;
  const PackedWeights* weights = nullptr;
  std::byte* arena = nullptr;  // Plan::arena_bytes, 64-byte aligned
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  std::size_t first_step = 0, end_step = ~std::size_t{0};  // a segment of the plan; by default all of it
};

// Seconds spent in each step, added up over runs; only filled when asked for.
using StepTimes = std::vector<double>;

// The plan (or the segment) on the calling thread. Errors carry the node as context.
void run_alone(const Run&, WorkerSpace&, StepTimes* times = nullptr);

// The plan (or the segment) by all workers of the pool, which share the tasks of each stage. spaces: one for each worker of the pool.
void run_together(const Run&, TaskPool& pool, std::span<WorkerSpace> spaces, StepTimes* times = nullptr);

}  // namespace tandem
