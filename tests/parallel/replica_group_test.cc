#include "parallel/replica_group.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "runtime/base/error.h"
#include "tests/support/networks.h"

namespace tandem::test {
namespace {

bool same_bits(const Tensor& a, const Tensor& b) { return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.bytes()) == 0; }

Tensor images(std::int64_t n) { return random_f32({n, 3, 16, 16}, 99); }

Tensor rows(const Tensor& t, std::int64_t first, std::int64_t count) {
  Shape shape = t.shape();
  shape[0] = count;
  Tensor out(t.dtype(), shape);
  const std::size_t row = t.bytes() / static_cast<std::size_t>(t.shape()[0]);
  std::memcpy(out.mutable_data(), static_cast<const char*>(t.data()) + static_cast<std::size_t>(first) * row, out.bytes());
  return out;
}

struct OnePool {
  OnePool(Graph g, int threads, GroupOptions options = {})
      : pool(threads), cpu(CpuInfo::detect()), group(std::make_shared<const Graph>(std::move(g)), options, pool, cpu) {}
  TaskPool pool;
  CpuInfo cpu;
  ReplicaGroup group;
};

TEST(ReplicaGroup, BitsDependOnNeitherBatchNorThreadsNorReplicas) {
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    const PlanOptions plan{.precision = precision};
    OnePool one(small_xception(), 1, {.plan = plan});
    const Tensor x = images(9);
    const Tensor want = one.group.run({x})[0];
    for (std::int64_t i = 0; i < 9; ++i) EXPECT_TRUE(same_bits(one.group.run({rows(x, i, 1)})[0], rows(want, i, 1))) << i;
    for (const int threads : {1, 2, 3}) {
      for (const int replicas : {1, 2, 3, 8}) {
        for (const bool copies : {false, true}) {
          OnePool many(small_xception(), threads, {.replicas = replicas, .plan = plan, .weights_per_replica = copies});
          EXPECT_TRUE(same_bits(many.group.run({x})[0], want)) << threads << " threads, " << replicas << " replicas";
          EXPECT_TRUE(same_bits(many.group.run({rows(x, 2, 2)})[0], rows(want, 2, 2)));
        }
      }
    }
  }
}

TEST(ReplicaGroup, PassesKeepTheFunction) {
  OnePool plain(small_xception(), 2, {.plan = {.passes = false}}), optimised(small_xception(), 2);
  expect_close(optimised.group.run({images(3)})[0], plain.group.run({images(3)})[0], 1e-4, 1e-6);
  const auto prepared = optimised.group.prepare({{{3, 3, 16, 16}}, {}});
  EXPECT_FALSE(prepared->plan.fused.empty());
  EXPECT_LT(prepared->plan.steps.size(), plain.group.prepare({{{3, 3, 16, 16}}, {}})->plan.steps.size() / 2);
}

TEST(ReplicaGroup, ServesSeveralThreadsAtOnce) {
  OnePool s(small_xception(), 2, {.replicas = 2});
  const Tensor x = images(5);
  const Tensor want = s.group.run({x})[0];
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&, c] {
      for (int i = 0; i < 10; ++i) wrong += !same_bits(s.group.run({rows(x, c, 1 + c % 2)})[0], rows(want, c, 1 + c % 2));
    });
  }
  for (auto& c : callers) c.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(ReplicaGroup, AGraphThatMixesSamplesRunsWhole) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::kF32, {-1, 4});
  b.output(b.node("mean", "ReduceMean", {x, b.constant("axes", i64({1}, {0}))}, attributes({{"keepdims", std::int64_t{1}}})));
  OnePool s(b.graph, 2, {.replicas = 3});
  expect_close(s.group.run({f32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})})[0], f32({1, 4}, {3, 4, 5, 6}));
  EXPECT_FALSE(s.group.prepare({{{2, 4}}, {}})->cut.possible);
}

TEST(ReplicaGroup, APlanAloneTakesNoMemory) {
  OnePool s(small_xception(), 2);
  const auto prepared = s.group.prepare({{{4, 3, 16, 16}}, {}});
  EXPECT_GT(s.group.predict(*prepared, {{{4, 3, 16, 16}}, {}}).weights, 0u);
  EXPECT_TRUE(prepared->weights.empty());
  EXPECT_EQ(s.group.memory().peak_bytes(), 0u);
  OnePool other(small_xception(), 2);
  EXPECT_TRUE(same_bits(s.group.run({images(4)})[0], other.group.run({images(4)})[0]));
}

TEST(ReplicaGroup, OnlyTheLastPlansAreKept) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::kF32, {-1, 2});
  b.output(b.node("sum", "ReduceSum", {x, b.constant("axes", i64({1}, {0}))}, attributes({{"keepdims", std::int64_t{1}}})));
  OnePool whole(b.graph, 1), cut(small_xception(), 1);
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t n = 1; n <= 100; ++n) {
      const std::vector<float> ones(static_cast<std::size_t>(2 * n), 1.0f);
      expect_close(whole.group.run({f32({n, 2}, ones)})[0], f32({1, 2}, {static_cast<float>(n), static_cast<float>(n)}));
      EXPECT_LE(whole.group.kept_plans(), 64u);
      cut.group.prepare({{{n, 3, 16, 16}}, {}});
      EXPECT_LE(cut.group.kept_plans(), 64u);
    }
  }
  EXPECT_TRUE(same_bits(cut.group.run({images(3)})[0], OnePool(small_xception(), 1).group.run({images(3)})[0]));
}

TEST(ReplicaGroup, RefusesInputsThatDoNotFit) {
  OnePool s(small_xception(), 1);
  EXPECT_THROW(s.group.run({}), InvalidData);
  EXPECT_THROW(s.group.run({random_f32({1, 3, 16, 15}, 1)}), InvalidData);
  EXPECT_THROW(s.group.run({Tensor(DType::kI32, {1, 3, 16, 16})}), InvalidData);
}

TEST(ReplicaGroup, ALimitThatDoesNotFitIsRefusedWithTheBatchThatDoes) {
  const std::size_t before = resident_bytes();
  OnePool s(small_xception(), 1, {.memory_limit = before + (std::size_t{24} << 20)});
  try {
    s.group.prepare({{{100000, 3, 16, 16}}, {}});
    FAIL();
  } catch (const OutOfMemory& e) {
    EXPECT_NE(e.message().find("a batch of "), std::string::npos) << e.message();
  }
  EXPECT_NO_THROW(s.group.run({images(2)}));
}

}  // namespace
}  // namespace tandem::test
