// Packed weights: the bytes that kernels made from constant operands and from parameters, shared by all plans of a graph.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/cpu/task_pool.h"
#include "runtime/memory/memory.h"
#include "runtime/plan/plan.h"

namespace tandem {

// Pointers to the packed operands of one plan, in the order of Plan::packs; keeps them alive.
class PackedWeights {
 public:
  const void* const* pointers(const Step& step) const { return pointers_.data() + step.first_pack; }

 private:
  friend class WeightStore;
  std::vector<std::shared_ptr<std::byte>> blocks_;  // parts of the stores' buffers
  std::vector<const void*> pointers_;
  std::vector<std::size_t> parameters_;  // packs of parameters whose blocks are this plan's to fill
};

// What the packed weights of a plan take when nothing of it is packed yet.
struct PackingBytes {
  std::size_t packed = 0;
  std::size_t peak = 0;  // while `workers` workers pack: what is packed so far and the operands that they make meanwhile
};
PackingBytes packing_bytes(const Plan& plan, int workers);

// The packed weights of one graph on one device. Thread-safe.
class WeightStore {
 public:
  // Both must outlive the store.
  WeightStore(MemoryResource& memory, TaskPool& pool) : memory_(memory), pool_(pool) {}

  // Packs the constants that are not here yet, in parallel, then lets go of the plan's unpacked weights. Parameters get room.
  std::shared_ptr<const PackedWeights> pack(Plan& plan);
  // Packs the parameters anew that no earlier plan of the store packs. `inputs`: of Plan::inputs, only parameters are looked at.
  void refresh(const Plan& plan, const PackedWeights& weights, std::span<const Tensor> inputs);
  // Later plans find nothing of what is here: to be called when the plans that refresh it are gone.
  void forget();
  // A copy of what another store packed for the same plan (`--weights device`).
  std::shared_ptr<const PackedWeights> copy(const Plan& plan, const PackedWeights& from);

 private:
  // A block for each pack: one that is here already, or a new one (all in one buffer), whose index is added to `missing`.
  std::shared_ptr<PackedWeights> place(const Plan& plan, std::vector<std::size_t>& missing);
  // New blocks are found by later plans from here on: when they are filled.
  void keep(const Plan& plan, const PackedWeights& weights, const std::vector<std::size_t>& filled);

  MemoryResource& memory_;
  TaskPool& pool_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<std::byte>> by_key_;
};

}  // namespace tandem
