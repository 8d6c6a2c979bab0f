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

TEST(WeightStore, WhatRanOutOfMemoryIsPackedTheNextTime) {
  FailingMemory memory;
  TaskPool pool(2);
  WeightStore store(memory, pool);
  Plan plan;
  for (const char* key : {"a", "b"}) {
    Tensor value(DType::kF32, {1});
    value.as_mutable<float>()[0] = 7;
    plan.packs.push_back({key, 4, [value](void* to) { *static_cast<float*>(to) = value.as<float>()[0]; }});
  }
  memory.fails_at = 1;
  EXPECT_THROW(store.pack(plan), OutOfMemory);
  const auto weights = store.pack(plan);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(*static_cast<const float*>(weights->pointers({})[i]), 7) << i;
  EXPECT_FALSE(plan.packs[0].fill) << "the unpacked weights are held";
}

}  // namespace
}  // namespace tandem
