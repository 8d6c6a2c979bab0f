// What `tandem train` decides before the first step: batch norm, shards, what is frozen; and what it refuses or warns of.
#include "tools/train_setup.h"

#include <gtest/gtest.h>

#include "importer/importer.h"
#include "io/npy.h"
#include "models/trainable.h"
#include "runtime/graph/training.h"
#include "tests/support/files.h"
#include "tests/support/node_test.h"
#include "tests/support/subprocess.h"
#include "tools/train_batch_norm.h"

namespace tandem::test {
namespace {

using namespace cli;

using Words = std::vector<std::string>;

Tensor filled(const Shape& shape, float value) {
  Tensor t(DType::kF32, shape);
  for (float& v : t.as_mutable<float>()) v = value;
  return t;
}

// The trained network with other statistics in all its batch norms, and where wanted scales and shifts.
Graph with_statistics(float mean, float variance, bool fresh) {
  Graph graph = import_file(trained_network());
  for (const BatchNormLayer& l : batch_norm_layers(graph)) {
    const Shape shape = {l.statistics.channels};
    graph.value(l.statistics.mean).constant = filled(shape, mean);
    graph.value(l.statistics.variance).constant = filled(shape, variance);
    if (fresh) graph.value(l.gamma).constant = filled(shape, 1), graph.value(l.beta).constant = filled(shape, 0);
  }
  return graph;
}

std::string chosen_batch_norm(const Graph& graph, std::string given = "") {
  Console quiet;
  quiet.quiet = true;
  choose_batch_norm(graph, given, "population", quiet);
  return given;
}

TEST(TrainSetup, BatchNormIsFrozenWhereAnExporterAbsorbedIt) {
  EXPECT_EQ(chosen_batch_norm(with_statistics(0, 1, false)), "frozen");
  EXPECT_EQ(chosen_batch_norm(with_statistics(0, 1, false), "sync"), "sync");
  EXPECT_EQ(chosen_batch_norm(with_statistics(0, 1, true)), "sync");  // never trained
  EXPECT_EQ(chosen_batch_norm(with_statistics(0, 0.5f, false)), "sync");
  EXPECT_EQ(chosen_batch_norm(import_file(trained_network())), "sync");
}

class TrainCommand : public testing::Test {
 protected:
  TrainCommand() {
    io::write_npy(folder_ / "x.npy", random_f32({14, 3, 64, 64}, 5));
    const std::vector<std::int32_t> labels = {0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3};
    io::write_npy(folder_ / "y.npy", Tensor::of<std::int32_t>({14}, std::span<const std::int32_t>(labels)));
  }
  Finished train(const std::string& name, const Words& more) const {
    Words words = {"train", trained_network(), folder_ / "x.npy", "--preprocess", "none", "--optimizer", "sgd", "--lr",
                   "0.01",  "--output",        folder_ / name};
    words.insert(words.end(), more.begin(), more.end());
    return run_tandem(words);
  }
  TemporaryFolder folder_;
};

// multi_gpu_model's shares are those of its devices: 3 and 4 of 7 samples on two.
TEST_F(TrainCommand, KerasSplitTakesAShardForEachDevice) {
  const Words split = {"--split", "keras", "--devices", "cpu:2", "--batch", "7", "--bn", "local"};
  ASSERT_EQ(train("chosen", split).code, 0);
  Words two = split;
  two.insert(two.end(), {"--shards", "2"});
  ASSERT_EQ(train("two", two).code, 0);
  EXPECT_EQ(run_tandem({"weights", "diff", folder_ / "chosen/model.onnx", folder_ / "two/model.onnx"}).code, 0);
  two.back() = "1";
  EXPECT_EQ(train("one", two).code, 2);  // fewer than the devices
}

TEST_F(TrainCommand, WarnsOfStatisticsFromFewValues) {
  const Finished poor = train("poor", {"--batch", "1", "--steps-per-epoch", "2"}), rich = train("rich", {"--batch", "14"});
  ASSERT_EQ(poor.code, 0) << poor.err;
  EXPECT_NE(poor.err.find("takes its statistics from 4 values per channel"), std::string::npos) << poor.err;
  EXPECT_EQ(rich.err.find("values per channel"), std::string::npos) << rich.err;
  // Shards of two samples, 2x2 pixels each.
  EXPECT_NE(train("local", {"--batch", "14", "--shards", "7", "--bn", "local"}).err.find("from 8 values per channel"), std::string::npos);
  EXPECT_EQ(train("frozen", {"--batch", "1", "--bn", "frozen", "--steps-per-epoch", "2"}).err.find("per channel"), std::string::npos);
}

TEST_F(TrainCommand, SaysWhatAnOptionDoesNotDo) {
  const Finished alone = train("alone", {"--train", "*"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.err.find("nothing is frozen"), std::string::npos) << alone.err;
  const Finished scaled = train("scaled", {"--freeze", "block1*", "--lr-scale", "block1*=0.1"});
  EXPECT_NE(scaled.err.find("--lr-scale: everything that is called \"block1*\" is frozen"), std::string::npos) << scaled.err;
  const Finished head = train("head", {"--classes", "6", "--freeze", "predictions/*"});
  EXPECT_NE(head.err.find("it stays as it was drawn"), std::string::npos) << head.err;
  const Finished variance = train("variance", {"--bn", "frozen", "--bn-variance", "unbiased"});
  EXPECT_NE(variance.err.find("--bn-variance: no batch norm takes statistics"), std::string::npos) << variance.err;
}

TEST_F(TrainCommand, LogsWhereItsNodesRun) {
  const Finished r = train("placed", {"--log-placement", "--devices", "cpu:2"});
  EXPECT_NE(r.err.find("placement: the batch is cut along axis 0 over cpu:0, cpu:1"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("(ConvGradWeight) on cpu:0,cpu:1 (hwy:f32:grad_weight)"), std::string::npos) << r.err;
}

TEST_F(TrainCommand, RefusesBf16x3WithoutAmx) {
  if (CpuInfo::detect().amx_bf16) GTEST_SKIP() << "this CPU has AMX";
  const Finished r = train("x3", {"--precision", "bf16x3"});
  EXPECT_EQ(r.code, 3);
  EXPECT_NE(r.err.find("needs a CPU with AMX"), std::string::npos) << r.err;
}

}  // namespace
}  // namespace tandem::test
