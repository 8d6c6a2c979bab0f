#include "runtime/plan/weights.h"

#include <algorithm>
#include <cstring>

namespace tandem {

namespace {
constexpr std::size_t kLine = 64;
}

std::shared_ptr<PackedWeights> WeightStore::place(const Plan& plan, std::vector<std::size_t>& missing) {
  auto weights = std::make_shared<PackedWeights>();
  std::vector<std::size_t> offsets;
  std::map<std::string, std::size_t> fresh;  // key to the pack that fills it
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < plan.packs.size(); ++i) {
    const PlannedPack& p = plan.packs[i];
    const bool here = !p.key.empty() && (by_key_.count(p.key) || !fresh.emplace(p.key, i).second);
    if (here) continue;
    missing.push_back(i);
    offsets.push_back(bytes);
    bytes += (p.bytes + kLine - 1) / kLine * kLine;
  }
  const auto buffer = std::make_shared<Buffer>(memory_, bytes + kLine);  // vector loads may look past the last block
  weights->blocks_.resize(plan.packs.size());
  for (std::size_t m = 0; m < missing.size(); ++m) weights->blocks_[missing[m]] = {buffer, buffer->data() + offsets[m]};
  for (std::size_t i = 0; i < plan.packs.size(); ++i) {
    if (!weights->blocks_[i]) {
      const auto known = by_key_.find(plan.packs[i].key);
      weights->blocks_[i] = known != by_key_.end() ? known->second : weights->blocks_[fresh.at(plan.packs[i].key)];
    }
    weights->pointers_.push_back(weights->blocks_[i].get());
  }
  return weights;
}

void WeightStore::keep(const Plan& plan, const PackedWeights& weights, const std::vector<std::size_t>& filled) {
  for (const std::size_t i : filled) {
    if (!plan.packs[i].key.empty()) by_key_[plan.packs[i].key] = weights.blocks_[i];
  }
}

std::shared_ptr<const PackedWeights> WeightStore::pack(Plan& plan) {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> missing;
  const auto weights = place(plan, missing);
  // Largest first: what a deferred operand takes while it is packed then comes before most of the packed bytes, not on top of them.
  std::stable_sort(missing.begin(), missing.end(), [&](std::size_t a, std::size_t b) { return plan.packs[a].bytes > plan.packs[b].bytes; });
  pool_.parallel_for(static_cast<int>(missing.size()), [&](int, int m) {
    const std::size_t i = missing[static_cast<std::size_t>(m)];
    plan.packs[i].fill(weights->blocks_[i].get());
    plan.packs[i].fill = nullptr;
  });
  for (PlannedPack& p : plan.packs) p.fill = nullptr;
  keep(plan, *weights, missing);
  return weights;
}

std::shared_ptr<const PackedWeights> WeightStore::copy(const Plan& plan, const PackedWeights& from) {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> missing;
  const auto weights = place(plan, missing);
  for (const std::size_t i : missing) std::memcpy(weights->blocks_[i].get(), from.blocks_[i].get(), plan.packs[i].bytes);
  keep(plan, *weights, missing);
  return weights;
}

}  // namespace tandem
