// What training computes does not depend on threads, on what is computed again instead of kept, or on how the last batch is cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/memory/memory.h"
#include "tests/support/networks.h"
#include "tests/support/training_runs.h"

namespace tandem::test {
namespace {

constexpr std::int64_t kClasses = 10;

// The network's parameters by their operators: its names are not Keras'.
TrainerOptions options_for(const Graph& graph, BatchNormMode mode) {
  TrainerOptions options;
  for (const Node& node : graph.nodes) {
    const bool product = node.op == "Conv" || node.op == "Gemm", norm = node.op == "BatchNormalization";
    for (std::size_t i = 1; (product || (norm && mode != BatchNormMode::kFrozen)) && i < node.inputs.size() && i < 3; ++i) {
      options.training.trained.push_back(node.inputs[i]);
      options.parameters.push_back({.name = graph.value(node.inputs[i]).name, .shape = graph.value(node.inputs[i]).shape});
    }
  }
  options.training.batch_norm = mode;
  if (mode != BatchNormMode::kFrozen) {
    for (const BatchNormLayer& layer : batch_norm_layers(graph)) options.training.running.push_back(layer.statistics);
  }
  options.optimizer = default_optimizer("adam", OptimizerConvention::kKeras);
  return options;
}

// small_xception() with a Dropout in front of its last product.
Graph with_dropout() {
  Graph graph = small_xception();
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].op != "Gemm") continue;
    Node drop;
    drop.name = "drop";
    drop.op = "Dropout";
    drop.inputs = {graph.nodes[n].inputs[0], graph.add_constant("drop/ratio", Tensor::scalar(0.5f))};
    drop.outputs = {graph.add_value("drop:0", DType::kF32)};
    graph.nodes[n].inputs[0] = drop.outputs[0];
    graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(n), drop);
    break;
  }
  return graph;
}

TrainingBatch batch_of(std::int64_t samples, std::int64_t step) {
  TrainingBatch batch{.inputs = {random_f32({samples, 3, 16, 16}, static_cast<std::uint64_t>(100 + step))}};
  batch.target = Tensor(DType::kF32, {samples, kClasses});
  batch.weight = Tensor(DType::kF32, {samples});
  for (std::int64_t s = 0; s < samples; ++s) {
    batch.target.as_mutable<float>()[static_cast<std::size_t>(s * kClasses + (s * 7 + step) % kClasses)] = 1;
    batch.weight.as_mutable<float>()[static_cast<std::size_t>(s)] = s % 3 == 0 ? 0.5f : 1.0f;
  }
  batch.seed = 42;
  batch.step = step;
  return batch;
}

struct Setting {
  int threads = 1;
  Recompute recompute = Recompute::kCheap;
};

Trainer::State trained(const Graph& graph, TrainerOptions options, const Setting& s, const std::vector<std::int64_t>& batches) {
  options.training.recompute = s.recompute;
  TaskPool pool(s.threads);
  CpuInfo cpu = CpuInfo::detect();
  cpu.emulate_amx = options.shards.plan.precision == Precision::kBF16x3;
  Trainer trainer(std::make_shared<const Graph>(graph), options, pool, cpu);
  for (std::size_t b = 0; b < batches.size(); ++b) trainer.step(batch_of(batches[b], static_cast<std::int64_t>(b)), 0.01f);
  return trainer.state();
}

void expect_equal(const Trainer::State& a, const Trainer::State& b, const std::string& what) {
  const auto arrays = [](const Trainer::State& s) {
    auto all = s.weights;
    all.insert(all.end(), s.statistics.begin(), s.statistics.end());
    all.insert(all.end(), s.slots.begin(), s.slots.end());
    return all;
  };
  const auto left = arrays(a), right = arrays(b);
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    ASSERT_EQ(left[i].name, right[i].name);
    ASSERT_EQ(0, std::memcmp(left[i].values.data(), right[i].values.data(), left[i].values.bytes())) << what << ": " << left[i].name;
    for (const double v : left[i].values.to_doubles()) ASSERT_TRUE(std::isfinite(v)) << what << ": " << left[i].name;
  }
}

class TrainingBits : public testing::TestWithParam<std::tuple<BatchNormMode, Precision>> {};

TEST_P(TrainingBits, AreThoseOfOneThread) {
  const Graph graph = with_dropout();
  const auto [mode, precision] = GetParam();
  TrainerOptions options = options_for(graph, mode);
  options.shards.plan.precision = precision;
  const std::vector<std::int64_t> batches = precision == Precision::kBF16x3 ? std::vector<std::int64_t>{9} : std::vector<std::int64_t>{16, 13, 3, 1};
  const auto one = trained(graph, options, {}, batches);
  for (const Setting& s :
       {Setting{2, Recompute::kCheap}, Setting{3, Recompute::kNothing}, Setting{16, Recompute::kDepthwise}, Setting{2, Recompute::kBlocks}})
    expect_equal(one, trained(graph, options, s, batches), std::to_string(s.threads) + " threads");
}

// Scalar kernels cost a sanitizer build minutes: it takes one precision and a few sizes.
const bool kSanitized = !std::string(TANDEM_SANITIZE).empty();
const auto kPrecisions =
    kSanitized ? std::vector<Precision>{Precision::kF32} : std::vector<Precision>{Precision::kF32, Precision::kBF16, Precision::kBF16x3};
INSTANTIATE_TEST_SUITE_P(Modes, TrainingBits,
                         testing::Combine(testing::Values(BatchNormMode::kSync, BatchNormMode::kLocal, BatchNormMode::kFrozen),
                                          testing::ValuesIn(kPrecisions)));

TEST(TrainingBits, LastBatchesOfEverySizeTrain) {
  const Graph graph = with_dropout();
  for (std::int64_t size = 1; size <= 17; size += kSanitized ? 6 : 1) {
    const auto options = options_for(graph, BatchNormMode::kSync);
    expect_equal(trained(graph, options, {}, {8, size}), trained(graph, options, {2, Recompute::kCheap}, {8, size}),
                 "a last batch of " + std::to_string(size));
  }
}

// A limit between what two levels of recomputation take: more is computed again, after the first step as well, and no bit changes.
TEST(TrainingBits, AMemoryLimitChangesNone) {
  const Graph graph = with_dropout();
  TrainerOptions options = options_for(graph, BatchNormMode::kSync);
  TaskPool pool(2);
  const CpuInfo cpu = CpuInfo::detect();
  const auto shared = std::make_shared<const Graph>(graph);
  const auto needs = [&](Recompute recompute) {
    TrainerOptions o = options;
    o.training.recompute = recompute;
    return Trainer(shared, o, pool, cpu).predict({{64, 3, 16, 16}}).total();
  };
  const std::size_t most = needs(Recompute::kNothing), least = needs(Recompute::kCheap);
  ASSERT_GT(most, least + (std::size_t{1} << 20));
  const std::vector<std::int64_t> batches = {8, 64, 64, 5};
  const auto free = trained(graph, options, {2, Recompute::kCheap}, batches);
  options.training.recompute = Recompute::kNothing;
  options.shards.memory_limit = resident_bytes() + (most + least) / 2;
  Trainer limited(shared, options, pool, cpu);
  for (std::size_t b = 0; b < batches.size(); ++b) limited.step(batch_of(batches[b], static_cast<std::int64_t>(b)), 0.01f);
  EXPECT_NE(limited.group().recomputed(), Recompute::kNothing);
  expect_equal(free, limited.state(), "a memory limit");
}

// Where nothing fits the advice is for the level that takes least, which need not be the last one.
TEST(TrainingBits, WhatDoesNotFitIsToldOfTheLeast) {
  const Graph graph = with_dropout();
  TrainerOptions options = options_for(graph, BatchNormMode::kSync);
  TaskPool pool(2);
  const CpuInfo cpu = CpuInfo::detect();
  const auto shared = std::make_shared<const Graph>(graph);
  std::size_t least = ~std::size_t{0};
  for (const Recompute level : {Recompute::kNothing, Recompute::kCheap, Recompute::kDepthwise, Recompute::kBlocks}) {
    options.training.recompute = level;
    least = std::min(least, Trainer(shared, options, pool, cpu).predict({{64, 3, 16, 16}}).total());
  }
  options.training.recompute = Recompute::kNothing;
  options.shards.memory_limit = 1 << 20;
  Trainer limited(shared, options, pool, cpu);
  EXPECT_EQ(limited.predict({{64, 3, 16, 16}}).total(), least);
  EXPECT_THROW(limited.step(batch_of(64, 0), 0.01f), OutOfMemory);
}

// A second output's weights: the loss, which looks at the first, leaves them alone and says so.
TEST(TrainingState, WhatTheLossDoesNotReachIsNamedAndKept) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::kF32, {-1, 6});
  const ValueId seen = b.constant("seen/kernel", random_f32({6, 10}, 1)), unseen = b.constant("unseen/kernel", random_f32({6, 4}, 2));
  b.output(b.node("scores", "Gemm", {x, seen}));
  b.output(b.node("features", "Gemm", {x, unseen}));
  TrainerOptions options;
  options.training.trained = {seen, unseen};
  for (const ValueId id : options.training.trained) options.parameters.push_back({.name = b.graph.value(id).name, .shape = b.graph.value(id).shape});
  TaskPool pool(2);
  const CpuInfo cpu = CpuInfo::detect();
  Trainer trainer(std::make_shared<const Graph>(b.graph), options, pool, cpu);
  const auto before = trainer.state();
  TrainingBatch batch = batch_of(9, 0);
  batch.inputs = {random_f32({9, 6}, 3)};
  trainer.step(batch, 0.1f);
  EXPECT_EQ(trainer.without_gradient(), std::vector<std::string>{"unseen/kernel"});
  const auto after = trainer.state();
  const auto same = [&](std::size_t i) {
    return std::memcmp(before.weights[i].values.data(), after.weights[i].values.data(), before.weights[i].values.bytes()) == 0;
  };
  EXPECT_FALSE(same(0));
  EXPECT_TRUE(same(1));
}

TEST(TrainingState, RestoredGoesOnWithTheSameBits) {
  const Graph graph = with_dropout();
  TrainerOptions options = options_for(graph, BatchNormMode::kLocal);
  options.accumulate = 3;
  TaskPool pool(2);
  const CpuInfo cpu = CpuInfo::detect();
  const auto shared = std::make_shared<const Graph>(graph);
  Trainer whole(shared, options, pool, cpu), first(shared, options, pool, cpu), second(shared, options, pool, cpu);
  for (std::int64_t step = 0; step < 7; ++step) whole.step(batch_of(10, step), 0.01f);
  for (std::int64_t step = 0; step < 4; ++step) first.step(batch_of(10, step), 0.01f);
  second.restore(first.state());
  for (std::int64_t step = 4; step < 7; ++step) second.step(batch_of(10, step), 0.01f);
  expect_equal(whole.state(), second.state(), "after restore");
  EXPECT_EQ(whole.iteration(), 2);
  auto broken = first.state();
  broken.slots.pop_back();
  EXPECT_THROW(second.restore(broken), InvalidData);
  expect_equal(whole.state(), second.state(), "after a refused state");
}

}  // namespace
}  // namespace tandem::test
