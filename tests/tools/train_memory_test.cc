// What `tandem train` says it will take, and what a limit refuses before the first step. Measured peaks: memory_test.cc.
#include "tools/train_memory.h"

#include <gtest/gtest.h>

#include "importer/importer.h"
#include "runtime/base/error.h"
#include "tests/support/files.h"
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
  TrainSetup setup() const { return make_setup(import_file(trained_network()), {.names = {}, .count = 5, .values = {}}, flags_, 0, quiet_); }
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
  EXPECT_EQ(decoded_ahead(options_), 2u * 3 * 64 * 64 * sizeof(float));
}

}  // namespace
}  // namespace tandem::test
