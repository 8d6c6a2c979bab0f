#include "runtime/memory/memory.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"

namespace tandem {
namespace {

// Counts without taking memory, and can be told to fail.
class FakeMemory final : public MemoryResource {
 public:
  void* allocate(std::size_t bytes) override {
    if (fail) throw OutOfMemory("fake", bytes);
    live += bytes;
    return &block_;
  }
  void deallocate(void*, std::size_t bytes) noexcept override { live -= bytes; }
  std::size_t live = 0;
  bool fail = false;

 private:
  alignas(64) char block_ = 0;
};

TEST(LimitedMemory, RefusesWhatExceedsTheLimitAndSaysHowMuch) {
  FakeMemory fake;
  LimitedMemory limited(fake, 100);
  Buffer a(limited, 60);
  try {
    Buffer b(limited, 41);
    FAIL();
  } catch (const OutOfMemory& e) {
    EXPECT_EQ(e.requested, 41u);
    EXPECT_EQ(e.in_use, 60u);
    EXPECT_EQ(e.limit, 100u);
  }
  EXPECT_NO_THROW(Buffer(limited, 40));
  EXPECT_EQ(fake.live, 60u);
}

TEST(LimitedMemory, AFailureBelowLeavesTheCountRight) {
  FakeMemory fake;
  LimitedMemory limited(fake, 100);
  fake.fail = true;
  EXPECT_THROW(Buffer(limited, 100), OutOfMemory);
  fake.fail = false;
  EXPECT_NO_THROW(Buffer(limited, 100));
}

TEST(CountedMemory, KnowsLiveAndPeak) {
  FakeMemory fake;
  CountedMemory counted(fake);
  {
    Buffer a(counted, 10);
    Buffer b(counted, 30);
  }
  Buffer c(counted, 5);
  EXPECT_EQ(counted.live_bytes(), 5u);
  EXPECT_EQ(counted.peak_bytes(), 40u);
}

TEST(MappedMemory, GivesZeroedPagesBack) {
  MappedMemory system;
  Buffer b(system, 1 << 20);
  EXPECT_EQ(b.data()[12345], std::byte{0});
  Buffer moved = std::move(b);
  EXPECT_EQ(b.data(), nullptr);
  EXPECT_NE(moved.data(), nullptr);
}

TEST(MemoryPolicy, ParsesWhatTheCommandLineTakes) {
  EXPECT_EQ(MemoryPolicy::parse("grow").limit(1000), 0u);
  EXPECT_EQ(MemoryPolicy::parse("fraction=0.4").limit(1000), 400u);
  EXPECT_EQ(MemoryPolicy::parse("limit=8GiB").limit(1000), std::size_t{8} << 30);
  EXPECT_EQ(MemoryPolicy::parse("all").limit(1000), 1000u);
  for (const char* bad : {"", "fraction=0", "fraction=1.5", "fraction=x", "limit=", "limit=8 parsecs", "limit=-1", "half"}) {
    try {
      MemoryPolicy::parse(bad);
      ADD_FAILURE() << bad;
    } catch (const UsageError& e) {  // whoever read the option names it
      EXPECT_NE(std::string(e.what()).find("expected "), std::string::npos) << e.what();
      EXPECT_EQ(std::string(e.what()).find("--memory"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace tandem
