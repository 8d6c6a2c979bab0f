// `tandem train --lr-scale` through the program.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "importer/importer.h"
#include "io/npy.h"
#include "models/trainable.h"
#include "tests/support/files.h"
#include "tests/support/node_test.h"
#include "tests/support/subprocess.h"
#include "tests/support/train_program.h"

namespace tandem::test {
namespace {

// Eight samples of five classes.
void make_data(const TemporaryFolder& folder) {
  io::write_npy(folder / "x.npy", random_f32({8, 3, 16, 16}, 5));
  const std::vector<std::int32_t> labels = {0, 1, 2, 3, 4, 0, 1, 2};
  io::write_npy(folder / "y.npy", Tensor::of<std::int32_t>({8}, std::span<const std::int32_t>(labels)));
}

Words train_words(const TemporaryFolder& folder, const Words& more, const char* rate = "0.01") {
  Words words = {"train",
                 TANDEM_SOURCE_DIR "/tests/data/training/net_a_softmax.onnx",
                 folder / "x.npy",
                 "--preprocess",
                 "none",
                 "--optimizer",
                 "sgd",
                 "--lr",
                 rate,
                 "--batch",
                 "8"};
  return words + more;
}

// The network's arrays by name.
std::map<std::string, std::vector<double>> arrays_of(const std::string& model) {
  const Graph graph = import_file(model);
  std::map<std::string, std::vector<double>> arrays;
  for (const models::TrainableArray& a : models::trainable_arrays(graph)) arrays[a.name] = graph.value(a.value).constant.made().to_doubles();
  return arrays;
}

// One step of plain SGD: what an array moves by is its rate times a gradient that is the same in both runs. A factor that is a power of two leaves
// the digits as they are; the last of several patterns holds.
TEST(Train, ArraysWithRatesOfTheirOwnMoveInProportion) {
  const TemporaryFolder folder;
  make_data(folder);
  ASSERT_EQ(run_tandem(train_words(folder, {"--output", folder / "plain"})).code, 0);
  const Finished r = run_tandem(
      train_words(folder, Words{"--lr-scale", "*=0.1", "--lr-scale", "*/kernel=8", "--lr-scale", "conv1/*=0.5", "--output", folder / "scaled"}));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("learning rate: "), std::string::npos) << r.err;
  // A step this small is none.
  ASSERT_EQ(run_tandem(train_words(folder, {"--output", folder / "start"}, "1e-30")).code, 0);
  const auto start = arrays_of(folder / "start/model.onnx"), plain = arrays_of(folder / "plain/model.onnx"),
             scaled = arrays_of(folder / "scaled/model.onnx");
  ASSERT_EQ(plain.size(), start.size());
  std::map<double, double> largest;  // of each factor; a bias in front of a normalisation has no gradient
  for (const auto& [name, before] : start) {
    const double factor = name.starts_with("conv1/") ? 0.5 : name.ends_with("/kernel") ? 8 : 0.1;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const double moved = plain.at(name)[i] - before[i], found = scaled.at(name)[i] - before[i];
      largest[factor] = std::max(largest[factor], std::abs(moved));
      // Both are rounded where the weight lies.
      EXPECT_NEAR(found, factor * moved, 1.2e-7 * (1 + factor) * (std::abs(before[i]) + std::abs(moved) + std::abs(found)) + 1e-9) << name;
    }
  }
  EXPECT_EQ(largest.size(), 3u);
  for (const auto& [factor, moved] : largest) EXPECT_GT(moved, 1e-4) << factor;
}

TEST(Train, RatesOfTheirOwnAreKeptAndCompared) {
  const TemporaryFolder folder;
  make_data(folder);
  const Words scales = {"--lr-scale", "*/kernel=0.5", "--lr-scale", "bn1/*=2"};
  ASSERT_EQ(run_tandem(train_words(folder, scales + Words{"--output", folder / "first"})).code, 0);
  EXPECT_NE(read_text(folder / "first/args.toml").find("lr-scale = [\"*/kernel=0.5\",\"bn1/*=2\"]\n"), std::string::npos);
  const Finished again =
      run_tandem({"train", train_words(folder, {})[1], folder / "x.npy", "--config", folder / "first/args.toml", "--output", folder / "second"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(read_text(folder / "first/model.onnx") == read_text(folder / "second/model.onnx"));
  const Finished same = run_tandem(train_words(folder, scales + Words{"--epochs", "2", "--resume", folder / "first"}));
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(same.err.find("made with"), std::string::npos) << same.err;
  const Finished other = run_tandem(train_words(folder, {"--epochs", "3", "--resume", folder / "first"}));
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_NE(other.err.find("made with lr-scale ="), std::string::npos) << other.err;
}

TEST(Train, RatesOfTheirOwnThatMakeNoSenseAreRefused) {
  const TemporaryFolder folder;
  make_data(folder);
  for (const auto& [text, said] : std::map<std::string, std::string>{{"nothing*=2", "no parameter is called \"nothing*\""},
                                                                     {"*=0", "--freeze '*'"},
                                                                     {"*=-1", "\"-1\""},
                                                                     {"*=x", "\"x\""},
                                                                     {"*=nan", "\"nan\""},
                                                                     {"*=1e-9", "at least"},
                                                                     {"*", "PATTERN=FACTOR"},
                                                                     {"=2", "PATTERN=FACTOR"}}) {
    const Finished r = run_tandem(train_words(folder, {"--lr-scale", text, "--output", folder / "out"}));
    EXPECT_EQ(r.code, 2) << text << ": " << r.err;
    EXPECT_NE(r.err.find("option --lr-scale: "), std::string::npos) << r.err;
    EXPECT_NE(r.err.find(said), std::string::npos) << text << ": " << r.err;
  }
}

}  // namespace
}  // namespace tandem::test
