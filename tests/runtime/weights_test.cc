#include "runtime/plan/weights.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"

namespace tandem {
namespace {

// Fails at the allocation that it is told to, counted from 0.
class FailingMemory final : public MemoryResource {
 public:
  void* allocate(std::size_t bytes) override {
    if (made++ == fails_at) throw OutOfMemory("fake", bytes);
    return below_.allocate(bytes);
  }
  void deallocate(void* block, std::size_t bytes) noexcept override { below_.deallocate(block, bytes); }
  int made = 0, fails_at = -1;

 private:
  MappedMemory below_;
};

Plan two_packs(bool second_fails) {
  Plan plan;
  for (const std::string key : {"a", "b"}) {
    plan.packs.push_back({.key = key,
                          .bytes = 4,
                          .fill =
                              [fails = second_fails && key == "b"](const Tensor& from, void* to) {
                                if (fails) throw OutOfMemory("fake", 4);
                                *static_cast<float*>(to) = from.as<float>()[0];
                              },
                          .operand = Tensor::scalar(7.0f),
                          .making_bytes = 0});
  }
  return plan;
}

TEST(WeightStore, WhatFailedHalfwayIsPackedTheNextTime) {
  MappedMemory memory;
  TaskPool pool(2);
  WeightStore store(memory, pool);
  Plan broken = two_packs(true), whole = two_packs(false);
  EXPECT_THROW(store.pack(broken), OutOfMemory);
  const auto weights = store.pack(whole);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(*static_cast<const float*>(weights->pointers({})[i]), 7) << i;
}

TEST(WeightStore, WhatRanOutOfMemoryIsPackedTheNextTime) {
  FailingMemory memory;
  TaskPool pool(2);
  WeightStore store(memory, pool);
  Plan plan = two_packs(false);
  memory.fails_at = 0;
  EXPECT_THROW(store.pack(plan), OutOfMemory);
  const auto weights = store.pack(plan);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(*static_cast<const float*>(weights->pointers({})[i]), 7) << i;
  EXPECT_FALSE(plan.packs[0].operand) << "the unpacked weights are held";
}

// Two of 12 MiB, each scaled from a source of the same size: made one after the other, the second beside the first's packed bytes.
TEST(WeightStore, PackingMakesLargeOperandsOneByOne) {
  constexpr std::size_t kBytes = std::size_t{12} << 20;
  Plan plan = two_packs(false);
  for (PlannedPack& p : plan.packs) p.bytes = p.making_bytes = kBytes;
  EXPECT_EQ(packing_bytes(plan, 2).peak, 3 * kBytes);
  for (PlannedPack& p : plan.packs) p.making_bytes = kBytes / 4;
  EXPECT_EQ(packing_bytes(plan, 2).peak, 2 * kBytes + kBytes / 2);
  plan.packs[1].key = "a";
  EXPECT_EQ(packing_bytes(plan, 2).peak, kBytes + kBytes / 4);
  EXPECT_EQ(packing_bytes(plan, 2).packed, kBytes);
}

}  // namespace
}  // namespace tandem
