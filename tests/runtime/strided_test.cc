#include "runtime/cpu/strided.h"

#include <gtest/gtest.h>

#include <set>

namespace tandem {
namespace {

// Every (offsets...) tuple that the loop visits, in order.
std::vector<std::vector<std::int64_t>> visits(const StridedLoop& loop) {
  std::vector<std::vector<std::int64_t>> all;
  for (int t = 0; t < loop.tasks(); ++t) {
    loop.for_each_run(t, [&](const std::int64_t* at, std::int64_t n) {
      for (std::int64_t k = 0; k < n; ++k) {
        std::vector<std::int64_t> v;
        for (std::size_t i = 0; i < loop.operands(); ++i) v.push_back(at[i] + k * loop.step(i));
        all.push_back(v);
      }
    });
  }
  return all;
}

TEST(Strided, MergesDenseOperandsToOneRun) {
  const TensorDesc a{DType::kF32, {2, 3, 4}};
  const auto loop = broadcast_loop(a, std::vector<TensorDesc>{a, a});
  EXPECT_EQ(loop.run(), 24);
  EXPECT_EQ(loop.step(0), 1);
  EXPECT_EQ(loop.tasks(), 1);
}

TEST(Strided, WalksChannelsLastInMemoryOrder) {
  const TensorDesc nhwc{DType::kF32, {2, 3, 4, 5}, Layout::kChannelsLast, 8}, bias{DType::kF32, {1, 3, 1, 1}};
  const auto loop = broadcast_loop(nhwc, std::vector<TensorDesc>{nhwc, bias}, 7);
  EXPECT_EQ(loop.run(), 3);
  const auto all = visits(loop);
  ASSERT_EQ(all.size(), 120u);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i], (std::vector<std::int64_t>{static_cast<std::int64_t>(i / 3 * 8 + i % 3), all[i][0], static_cast<std::int64_t>(i % 3)}));
  }
}

TEST(Strided, MixedLayoutsVisitEachElementOnce) {
  const TensorDesc nhwc{DType::kF32, {2, 3, 2, 5}, Layout::kChannelsLast, 3}, plain{DType::kF32, {2, 3, 2, 5}}, row{DType::kF32, {2, 1}};
  for (const std::int64_t task : {1, 4, 5, 1000}) {
    const auto all = visits(broadcast_loop(plain, std::vector<TensorDesc>{nhwc, row}, task));
    std::set<std::int64_t> second;
    ASSERT_EQ(all.size(), 60u);
    for (std::int64_t i = 0; i < 60; ++i) {
      const std::int64_t n = i / 30, c = i / 10 % 3, h = i / 5 % 2, w = i % 5;
      EXPECT_EQ(all[static_cast<std::size_t>(i)], (std::vector<std::int64_t>{i, ((n * 2 + h) * 5 + w) * 3 + c, h}));
      second.insert(all[static_cast<std::size_t>(i)][1]);
    }
    EXPECT_EQ(second.size(), 60u);
  }
}

TEST(Strided, HandlesRankZeroAndNothing) {
  EXPECT_EQ(visits(StridedLoop({}, {{}, {}})), (std::vector<std::vector<std::int64_t>>{{0, 0}}));
  const TensorDesc none{DType::kF32, {3, 0, 2}};
  const auto loop = broadcast_loop(none, std::vector<TensorDesc>{none});
  EXPECT_EQ(loop.tasks(), 1);
  EXPECT_TRUE(visits(loop).empty());
}

TEST(Strided, TakesNegativeAndRepeatedStrides) {
  // Operand 0 is written backwards; operand 1 is a diagonal-like view.
  const std::int64_t shape[] = {2, 3};
  const auto all = visits(StridedLoop(shape, {{-3, -1}, {1, 1}}, 2));
  EXPECT_EQ(all, (std::vector<std::vector<std::int64_t>>{{0, 0}, {-1, 1}, {-2, 2}, {-3, 1}, {-4, 2}, {-5, 3}}));
}

TEST(Strided, RefusesWhatDoesNotBroadcast) {
  EXPECT_THROW(broadcast_strides({DType::kF32, {2, 3}}, Shape{2, 4}), std::logic_error);
  EXPECT_THROW(broadcast_strides({DType::kF32, {1, 2, 3}}, Shape{2, 3}), std::logic_error);
}

}  // namespace
}  // namespace tandem
