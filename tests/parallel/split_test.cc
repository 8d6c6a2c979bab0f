#include "parallel/split.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tandem {
namespace {

using Sizes = std::vector<std::int64_t>;

// What multi_gpu_model of Keras 2.2.4 does, and the balanced rule beside it.
TEST(Split, BalancedDiffersByOneAndHasNoEmptyShare) {
  EXPECT_EQ(split_batch(256, 8, SplitRule::kBalanced), Sizes(8, 32));
  EXPECT_EQ(split_batch(50, 8, SplitRule::kBalanced), (Sizes{7, 7, 6, 6, 6, 6, 6, 6}));
  EXPECT_EQ(split_batch(10, 4, SplitRule::kBalanced), (Sizes{3, 3, 2, 2}));
  EXPECT_EQ(split_batch(7, 2, SplitRule::kBalanced), (Sizes{4, 3}));
  EXPECT_EQ(split_batch(4, 3, SplitRule::kBalanced), (Sizes{2, 1, 1}));
  EXPECT_EQ(split_batch(3, 8, SplitRule::kBalanced), (Sizes{1, 1, 1}));
}

TEST(Split, KerasGivesTheRestToTheLast) {
  EXPECT_EQ(split_batch(50, 8, SplitRule::kKeras), (Sizes{6, 6, 6, 6, 6, 6, 6, 8}));
  EXPECT_EQ(split_batch(10, 4, SplitRule::kKeras), (Sizes{2, 2, 2, 4}));
  EXPECT_EQ(split_batch(7, 2, SplitRule::kKeras), (Sizes{3, 4}));
  EXPECT_EQ(split_batch(3, 8, SplitRule::kKeras), (Sizes{3}));
}

TEST(Split, EverySampleOnceForEveryBatchAndCount) {
  for (std::int64_t batch = 1; batch <= 17; ++batch) {
    for (int parts = 1; parts <= 8; ++parts) {
      for (const SplitRule rule : {SplitRule::kBalanced, SplitRule::kKeras}) {
        std::int64_t sum = 0;
        for (const std::int64_t s : split_batch(batch, parts, rule)) {
          EXPECT_GT(s, 0);
          sum += s;
        }
        EXPECT_EQ(sum, batch);
      }
    }
  }
}

TEST(Split, AShareHoldsWhatItsSizeSays) {
  for (int count = 1; count <= 17; ++count) {
    for (int parts = 1; parts <= 8; ++parts) {
      Sizes found(static_cast<std::size_t>(std::min(count, parts)), 0);
      for (int i = 0, last = 0; i < count; last = share_of(i++, count, parts)) {
        EXPECT_GE(share_of(i, count, parts), last);
        ++found.at(static_cast<std::size_t>(share_of(i, count, parts)));
      }
      EXPECT_EQ(found, split_batch(count, parts, SplitRule::kBalanced)) << count << " in " << parts;
    }
  }
}

}  // namespace
}  // namespace tandem
