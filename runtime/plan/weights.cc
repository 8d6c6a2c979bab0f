#include "runtime/plan/weights.h"

#include <algorithm>
#include <cstring>

namespace tandem {

std::shared_ptr<const PackedWeights> WeightStore::pack(Plan& plan) {
  const std::lock_guard lock(mutex_);
  auto weights = std::make_shared<PackedWeights>();
  auto by_key = by_key_;  // where memory runs out, no block that was never filled stays known
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < plan.packs.size(); ++i) {
    PlannedPack& p = plan.packs[i];
    std::shared_ptr<Buffer> block;
    if (!p.key.empty()) {
      auto& shared = by_key[p.key];
      if (!shared) {
        shared = std::make_shared<Buffer>(memory_, p.bytes);
        missing.push_back(i);
      }
      block = shared;
    } else {
      block = std::make_shared<Buffer>(memory_, p.bytes);
      missing.push_back(i);
    }
    weights->pointers_.push_back(block->data());
    weights->blocks_.push_back(std::move(block));
  }
  // Largest first: what a deferred operand takes while it is packed then comes before most of the packed bytes, not on top of them.
  std::stable_sort(missing.begin(), missing.end(), [&](std::size_t a, std::size_t b) { return plan.packs[a].bytes > plan.packs[b].bytes; });
  pool_.parallel_for(static_cast<int>(missing.size()), [&](int, int m) {
    const std::size_t i = missing[static_cast<std::size_t>(m)];
    plan.packs[i].fill(weights->blocks_[i]->data());
    plan.packs[i].fill = nullptr;
  });
  by_key_ = std::move(by_key);
  for (PlannedPack& p : plan.packs) p.fill = nullptr;
  return weights;
}

std::shared_ptr<const PackedWeights> WeightStore::copy(const Plan& plan, const PackedWeights& from) {
  const std::lock_guard lock(mutex_);
  auto weights = std::make_shared<PackedWeights>();
  for (std::size_t i = 0; i < plan.packs.size(); ++i) {
    const PlannedPack& p = plan.packs[i];
    std::shared_ptr<Buffer> own;
    std::shared_ptr<Buffer>& block = p.key.empty() ? own : by_key_[p.key];
    if (!block) {
      block = std::make_shared<Buffer>(memory_, p.bytes);
      if (p.bytes) std::memcpy(block->data(), from.blocks_[i]->data(), p.bytes);
    }
    weights->pointers_.push_back(block->data());
    weights->blocks_.push_back(block);
  }
  return weights;
}

}  // namespace tandem
