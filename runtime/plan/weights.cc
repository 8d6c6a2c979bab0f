#include "runtime/plan/weights.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>
#include <set>

namespace tandem {

namespace {

constexpr std::size_t kLine = 64;
// Operands made at the same time take at most this much, or one of them alone.
constexpr std::size_t kMadeAtOnce = std::size_t{16} << 20;

std::size_t whole_lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Waves of packs. The largest come first: what making them takes then comes before most of the packed bytes, not on top of them.
std::vector<std::vector<std::size_t>> waves(const Plan& plan, std::vector<std::size_t> packs) {
  std::stable_sort(packs.begin(), packs.end(), [&](std::size_t a, std::size_t b) { return plan.packs[a].bytes > plan.packs[b].bytes; });
  std::vector<std::vector<std::size_t>> out;
  std::size_t made = 0;
  for (const std::size_t i : packs) {
    const std::size_t bytes = plan.packs[i].making_bytes;
    if (out.empty() || made + bytes > kMadeAtOnce) {
      out.emplace_back();
      made = 0;
    }
    out.back().push_back(i);
    made += bytes;
  }
  return out;
}

}  // namespace

PackingBytes packing_bytes(const Plan& plan, int workers) {
  std::vector<std::size_t> all;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < plan.packs.size(); ++i) {
    if (plan.packs[i].key.empty() || seen.insert(plan.packs[i].key).second) all.push_back(i);
  }
  PackingBytes bytes;
  for (const auto& wave : waves(plan, all)) {
    std::deque<std::size_t> making;
    for (const std::size_t i : wave) {
      bytes.packed += whole_lines(plan.packs[i].bytes);
      making.push_back(plan.packs[i].making_bytes);
      if (making.size() > static_cast<std::size_t>(workers)) making.pop_front();
      bytes.peak = std::max(bytes.peak, bytes.packed + std::accumulate(making.begin(), making.end(), std::size_t{0}));
    }
  }
  return bytes;
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
    bytes += whole_lines(p.bytes);
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
  std::vector<std::size_t> constants;
  for (const std::size_t i : missing) (plan.packs[i].input < 0 ? constants : weights->parameters_).push_back(i);
  for (const auto& wave : waves(plan, constants)) {
    pool_.parallel_for(static_cast<int>(wave.size()), [&](int, int w) {
      const std::size_t i = wave[static_cast<std::size_t>(w)];
      PlannedPack& p = plan.packs[i];
      p.fill(p.operand.made(), weights->blocks_[i].get());
      p.operand = {};
    });
  }
  for (PlannedPack& p : plan.packs) p.operand = {};
  keep(plan, *weights, missing);
  return weights;
}

void WeightStore::refresh(const Plan& plan, const PackedWeights& weights, std::span<const Tensor> inputs) {
  pool_.parallel_for(static_cast<int>(weights.parameters_.size()), [&](int, int p) {
    const std::size_t i = weights.parameters_[static_cast<std::size_t>(p)];
    plan.packs[i].fill(inputs[static_cast<std::size_t>(plan.packs[i].input)], weights.blocks_[i].get());
  });
}

void WeightStore::forget() {
  const std::lock_guard lock(mutex_);
  by_key_.clear();
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
