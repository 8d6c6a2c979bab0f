// What `tandem train` says it will take, and what a limit refuses before the first step. Measured peaks: memory_test.cc.
#include "tools/train_memory.h"

#include <gtest/gtest.h>

#include <array>

#include "importer/importer.h"
#include "runtime/base/error.h"
#include "tests/support/files.h"
#include "tests/support/graph_builder.h"
#include "tests/support/node_test.h"
#include "tools/console.h"
#include "tools/train_setup.h"

namespace tandem::test {
namespace {

using namespace cli;

class TrainMemoryTest : public testing::Test {
 protected:
  TrainMemoryTest() {
    flags_.freeze_backbone = true;
    options_.batch_size = 1;
    options_.sample_shape = {3, 64, 64};
    quiet_.quiet = true;
  }
  TrainSetup setup() { return make_setup(import_file(trained_network()), {.names = {}, .count = 5, .values = {}}, flags_, 0, quiet_); }
  TrainMemory predicted(const TrainSetup& s, std::int64_t validation) {
    Trainer trainer(s.graph, s.options, pool_, cpu_);
    return predict_memory(trainer, kHeld, options_, 8, validation, {}, pool_);
  }

  static constexpr std::size_t kHeld = 1000;
  TrainingFlags flags_;
  io::BatchOptions options_;
  Console quiet_;
  TaskPool pool_{2};
  const CpuInfo cpu_ = CpuInfo::detect();
};

TEST_F(TrainMemoryTest, ValidationCountsWhereItTakesMore) {
  const TrainMemory without = predicted(setup(), 0), with = predicted(setup(), 4);
  EXPECT_EQ(without.validation, 0u);
  EXPECT_EQ(without.peak(), kHeld + without.step);
  EXPECT_EQ(with.step, without.step);
  ASSERT_GT(with.validation, with.step);  // the folded weights, packed, outweigh one image's activations
  EXPECT_EQ(with.peak(), kHeld + with.validation);
}

TEST_F(TrainMemoryTest, AValidationThatDoesNotFitIsRefusedBeforeTheFirstStep) {
  const TrainMemory need = predicted(setup(), 4);
  ASSERT_GT(need.validation, need.step);
  TrainSetup limited = setup();
  limited.options.shards.memory_limit = kHeld + need.validation;
  EXPECT_NO_THROW(predicted(limited, 4));
  limited.options.shards.memory_limit = kHeld + need.validation - 1;
  EXPECT_NO_THROW(predicted(limited, 0));
  try {
    predicted(limited, 4);
    ADD_FAILURE() << "not refused";
  } catch (const OutOfMemory& e) {
    EXPECT_NE(std::string(e.what()).find("validation needs "), std::string::npos) << e.what();
  }
}

// A checkpoint holds the frozen layers too.
TEST_F(TrainMemoryTest, WhatIsFrozenIsSaved) {
  const TrainSetup frozen = setup();
  flags_.freeze_backbone = false;
  const TrainSetup all = setup();
  const auto bytes = [](const TrainSetup& s) {
    std::size_t sum = 0;
    for (const TrainedParameter& p : s.options.parameters) sum += static_cast<std::size_t>(elements(p.shape)) * sizeof(float);
    return sum;
  };
  const std::size_t beside_head = saved_beside(*frozen.graph, frozen.options.parameters),
                    beside_all = saved_beside(*all.graph, all.options.parameters);
  EXPECT_GT(beside_all, 0u);  // running statistics
  EXPECT_EQ(beside_head + bytes(frozen), beside_all + bytes(all));
}

// What a refusal says fits does, and no more.
TEST_F(TrainMemoryTest, WhatIsSaidToFitFits) {
  flags_.freeze_backbone = false;
  for (const char* bn : {"sync", "local"}) {
    flags_.bn = bn;
    const TrainSetup s = setup();
    TrainerOptions o = s.options;
    o.shards.shards = 8;
    options_.batch_size = 64;
    hold_decoded(options_, o.shards);
    EXPECT_EQ(o.shards.held_per_sample, 2u * 3 * 64 * 64 * sizeof(float));
    Trainer free(s.graph, o, pool_, cpu_);
    o.shards.memory_limit = free.group().held_before() + free.predict({{24, 3, 64, 64}}).total();
    Trainer limited(s.graph, o, pool_, cpu_);
    const auto refusal = [](Trainer& trainer, std::int64_t batch) -> std::string {
      try {
        trainer.group().check_limit({{batch, 3, 64, 64}});
      } catch (const OutOfMemory& e) {
        return e.what();
      }
      return "";
    };
    const std::string said = refusal(limited, 64);
    const std::size_t batch_at = said.find("a batch of "), shards_at = said.find("--shards ");
    if (batch_at != std::string::npos) {
      const std::int64_t fits = std::stoi(said.substr(batch_at + 11));
      EXPECT_EQ(refusal(limited, fits), "") << bn;
      EXPECT_NE(refusal(limited, fits + 8), "") << bn;  // a little is left for what varies
    } else if (shards_at != std::string::npos) {
      // Another group, before which the process holds more.
      o.shards.shards = std::stoi(said.substr(shards_at + 9));
      o.shards.memory_limit += resident_bytes() - limited.group().held_before();
      Trainer finer(s.graph, o, pool_, cpu_);
      EXPECT_EQ(refusal(finer, 64), "") << bn;
    } else {
      ADD_FAILURE() << bn << ": " << said;
    }
  }
}

// No other batch can be planned for a network whose batch is fixed: still the limit is what is wrong.
TEST_F(TrainMemoryTest, ARefusalStandsWhereTheBatchIsFixed) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::kF32, {2, 6}), w = b.constant("w/kernel", random_f32({6, 3}, 1));
  const ValueId rows = b.node("fixed", "Reshape", {x, b.constant("shape", Tensor::ints(std::array<std::int64_t, 2>{2, 6}))});
  b.output(b.node("y", "Gemm", {rows, w}));
  TrainerOptions o;
  o.training.trained = {w};
  o.parameters.push_back({.name = "w/kernel", .shape = {6, 3}});
  o.optimizer = default_optimizer("sgd", OptimizerConvention::kKeras);
  o.shards.shards = 1;
  o.shards.memory_limit = 1;
  Trainer trainer(std::make_shared<const Graph>(b.graph), o, pool_, cpu_);
  EXPECT_THROW(trainer.group().check_limit({{2, 6}}), OutOfMemory);
}

}  // namespace
}  // namespace tandem::test
