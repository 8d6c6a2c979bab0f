// What goes wrong in one shard ends the step for all of them, with that shard's own words, and the next step is as if nothing had been.
#include <gtest/gtest.h>

#include "parallel/trainer.h"
#include "runtime/base/error.h"
#include "tests/support/graph_builder.h"

namespace tandem::test {
namespace {

constexpr std::int64_t kRows = 4, kSamples = 8;

// Each sample picks a row of a table and passes a batch norm, so that with kSync the shards wait for each other behind the row.
struct Table {
  Table() {
    GraphBuilder b;
    const ValueId which = b.input("which", DType::kI64, {-1});
    const std::vector<float> start = {1, 2, 3, 4}, one = {1}, zero = {0};
    table = b.constant("table", Tensor::of<float>({kRows, 1, 1}, std::span<const float>(start)));
    const auto constant = [&](const char* name, const std::vector<float>& v) {
      return b.constant(name, Tensor::of<float>({1}, std::span<const float>(v)));
    };
    const ValueId row = b.node("pick", "Gather", {table, which}, attributes({{"axis", std::int64_t{0}}}));
    const ValueId norm = b.node("norm", "BatchNormalization",
                                {row, constant("gamma", one), constant("beta", zero), constant("mean", zero), constant("variance", one)});
    b.output(b.node("flat", "Flatten", {norm}));
    graph = std::make_shared<const Graph>(b.graph);
  }
  Trainer trainer(int shards, BatchNormMode mode, TaskPool& pool) const {
    TrainerOptions o;
    o.training.loss = "mse";
    o.training.batch_norm = mode;
    o.training.trained = {table};
    o.training.running = {batch_norm_layers(*graph).at(0).statistics};
    o.parameters = {{.name = "table", .shape = {kRows, 1, 1}}};
    o.optimizer = default_optimizer("adam", OptimizerConvention::kKeras);
    o.shards.shards = shards;
    return Trainer(graph, o, pool, cpu);
  }
  std::shared_ptr<const Graph> graph;
  ValueId table = kNoValue;
  const CpuInfo cpu = CpuInfo::detect();
};

// Sample `wrong` asks for a row that is not there.
TrainingBatch batch_of(std::int64_t wrong = -1) {
  TrainingBatch batch{
      .inputs = {Tensor(DType::kI64, {kSamples})}, .target = Tensor(DType::kF32, {kSamples, 1}), .weight = Tensor(DType::kF32, {kSamples})};
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const auto at = static_cast<std::size_t>(i);
    batch.inputs[0].as_mutable<std::int64_t>()[at] = i == wrong ? kRows : i * i % kRows + i % 2;
    batch.target.as_mutable<float>()[at] = static_cast<float>(i % 3);
    batch.weight.as_mutable<float>()[at] = 1;
  }
  return batch;
}

std::vector<std::vector<double>> all_values(const Trainer& trainer) {
  std::vector<std::vector<double>> all;
  const Trainer::State state = trainer.state();
  for (const auto* arrays : {&state.weights, &state.statistics, &state.slots}) {
    for (const auto& a : *arrays) all.push_back(a.values.to_doubles());
  }
  return all;
}

TEST(ShardFaults, AnErrorInOneShardIsToldAndForgotten) {
  const Table table;
  for (const BatchNormMode mode : {BatchNormMode::kSync, BatchNormMode::kLocal}) {
    for (const int threads : {1, 2, 5}) {
      TaskPool pool(threads);
      Trainer trainer = table.trainer(4, mode, pool), spared = table.trainer(4, mode, pool);
      trainer.step(batch_of(), 0.1f);
      spared.step(batch_of(), 0.1f);
      for (const std::int64_t wrong : {0, 3, 7}) {
        const auto before = all_values(trainer);
        try {
          trainer.step(batch_of(wrong), 0.1f);
          ADD_FAILURE() << "sample " << wrong << " passed";
        } catch (const Error& e) {
          EXPECT_NE(std::string(e.what()).find("\"pick\""), std::string::npos) << e.what();
        }
        EXPECT_EQ(all_values(trainer), before);
        trainer.step(batch_of(), 0.1f);
        spared.step(batch_of(), 0.1f);
        EXPECT_EQ(all_values(trainer), all_values(spared)) << threads << " threads, sample " << wrong;
      }
    }
  }
}

}  // namespace
}  // namespace tandem::test
