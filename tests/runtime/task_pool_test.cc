#include "runtime/cpu/task_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace tandem {
namespace {

TEST(TaskPool, RunsEveryIndexOnce) {
  TaskPool pool(3);
  std::vector<std::atomic<int>> seen(1000);
  pool.parallel_for(1000, [&](int worker, int i) {
    ASSERT_LT(worker, 3);
    seen[static_cast<std::size_t>(i)].fetch_add(1);
  });
  for (const auto& s : seen) EXPECT_EQ(s.load(), 1);
}

TEST(TaskPool, FirstErrorReachesTheCallerAndThePoolGoesOn) {
  TaskPool pool(2);
  EXPECT_THROW(pool.parallel_for(100,
                                 [](int, int i) {
                                   if (i == 7) throw std::runtime_error("seven");
                                 }),
               std::runtime_error);
  std::atomic<int> sum{0};
  pool.parallel_for(10, [&](int, int i) { sum += i; });
  EXPECT_EQ(sum.load(), 45);
}

TEST(TaskPool, NestedCallsRunInlineOnTheSameWorker) {
  TaskPool pool(2);
  std::atomic<int> wrong{0}, calls{0};
  pool.parallel_for(4, [&](int outer, int) {
    pool.parallel_for(5, [&](int inner, int) {
      calls += 1;
      wrong += inner != outer;
    });
  });
  EXPECT_EQ(calls.load(), 20);
  EXPECT_EQ(wrong.load(), 0);
}

TEST(TaskPool, SeveralCallersAtOnce) {
  TaskPool pool(2);
  std::atomic<int> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) pool.parallel_for(7, [&](int, int) { sum += 1; });
    });
  }
  for (auto& c : callers) c.join();
  EXPECT_EQ(sum.load(), 4 * 50 * 7);
}

TEST(TaskPool, GangSharesOneJobAndWaitsForItsMembers) {
  TaskPool pool(4);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> next{0}, done{0};
    pool.gang([&](int) {
      while (next.fetch_add(1) < 64) done.fetch_add(1);
      while (done.load() < 64) std::this_thread::yield();
    });
    ASSERT_EQ(done.load(), 64);
  }
}

TEST(TaskPool, SubmittedWorkIsFinishedBeforeThePoolGoes) {
  std::atomic<int> done{0};
  {
    TaskPool pool(2);
    for (int i = 0; i < 100; ++i) pool.submit([&] { done += 1; });
  }
  EXPECT_EQ(done.load(), 100);
}

}  // namespace
}  // namespace tandem
