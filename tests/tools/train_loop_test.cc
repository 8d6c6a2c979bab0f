// What the loop of `tandem train` says and keeps: rates when gradients are accumulated, epoch losses, the end of a run, values that are no numbers.
#include "tools/train_loop.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>
#include <sstream>

#include "io/npy.h"
#include "tests/support/files.h"
#include "tests/support/node_test.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using nlohmann::json;

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class TrainLoopTest : public testing::Test {
 protected:
  // `samples` of five classes for the network of 785 parameters, 16x16 pixels.
  std::string data(const std::string& name, std::int64_t samples, float first = 0) const {
    Tensor x = random_f32({samples, 3, 16, 16}, static_cast<std::uint64_t>(samples));
    if (first != 0) x.as_mutable<float>()[0] = first;
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < samples; ++i) labels.push_back(static_cast<std::int32_t>(i * 3 % 5));
    io::write_npy(folder_ / (name + ".npy"), x);
    io::write_npy(folder_ / (name + "_y.npy"), Tensor::of<std::int32_t>({samples}, std::span<const std::int32_t>(labels)));
    return folder_ / (name + ".npy");
  }
  Words words(const std::string& set, const Words& more) const {
    return Words{"train", TANDEM_SOURCE_DIR "/tests/data/training/net_a_softmax.onnx", set, "--preprocess", "none", "--optimizer", "sgd"} + more;
  }
  std::vector<json> log(const std::string& name) const {
    std::vector<json> all;
    std::ifstream in(folder_ / name);
    for (std::string line; std::getline(in, line);) all.push_back(json::parse(line));
    return all;
  }
  // Column of summary.csv.
  std::vector<double> column(const std::string& run, const std::string& name) const {
    std::istringstream in(read_text(folder_ / (run + "/summary.csv")));
    std::string line;
    std::getline(in, line);
    std::istringstream head(line);
    std::size_t at = 0;
    for (std::string cell; std::getline(head, cell, ',') && cell != name;) ++at;
    std::vector<double> values;
    while (std::getline(in, line)) {
      std::istringstream row(line);
      std::string cell;
      for (std::size_t i = 0; i <= at; ++i) std::getline(row, cell, ',');
      values.push_back(std::stod(cell));
    }
    return values;
  }
  TemporaryFolder folder_;
};

// Seven batches an epoch, four to an update: the rate of a batch is that of its place in the run.
TEST_F(TrainLoopTest, RatesFollowBatchesAlsoWhenGradientsAreAccumulated) {
  const Words run = {"--batch", "9", "--accumulate", "4", "--lr", "0.01", "--epochs", "4", "--log", folder_ / "log", "--output", folder_ / "out"};
  ASSERT_EQ(run_tandem(words(data("x", 60), run + Words{"--schedule", "cosine"})).code, 0);
  const auto steps = log("log");
  ASSERT_EQ(steps.size(), 28u);
  for (std::size_t t = 0; t < steps.size(); ++t)
    EXPECT_NEAR(steps[t]["lr"].get<double>(), 0.005 * (1 + std::cos(std::numbers::pi * static_cast<double>(t) / 28)), 1e-8) << t;
  fs::remove_all(folder_ / "out");
  ASSERT_EQ(run_tandem(words(data("x", 60), run + Words{"--schedule", "step:at=3"})).code, 0);
  const auto late = log("log");
  for (std::size_t t = 0; t < late.size(); ++t) EXPECT_NEAR(late[t]["lr"].get<double>(), t < 21 ? 0.01 : 0.001, 1e-9) << t;
}

// Keras' epoch loss: what the steps minimised, each with the penalty of its weights, by their samples. val_loss: with the weights that are measured.
TEST_F(TrainLoopTest, LossesOfAnEpochHaveThePenaltyOfTheirWeights) {
  const std::string set = data("x", 30);
  ASSERT_EQ(run_tandem(words(set, {"--batch", "8", "--lr", "0.05", "--weight-decay", "0.5", "--l2", "0.05", "--val-data", set, "--log",
                                   folder_ / "log", "--output", folder_ / "out"}))
                .code,
            0);
  double sum = 0, samples = 0;
  for (const json& step : log("log")) {
    sum += step["loss"].get<double>() * step["samples"].get<double>();
    samples += step["samples"].get<double>();
  }
  ASSERT_EQ(samples, 30);
  EXPECT_NEAR(column("out", "loss").at(0), sum / samples, 1e-6 * sum / samples);
  const Finished e = run_tandem({"evaluate", folder_ / "out/model.onnx", set, "--json"});
  ASSERT_EQ(e.code, 0) << e.err;
  // The next step of the same data in one batch: its loss is that of the weights as they are, with their penalty.
  const Finished next = run_tandem({"train", folder_ / "out/model.onnx", set, "--preprocess", "none", "--optimizer", "sgd", "--batch", "30", "--l2",
                                    "0.05", "--bn", "frozen", "--log", folder_ / "next", "--output", folder_ / "more"});
  ASSERT_EQ(next.code, 0) << next.err;
  EXPECT_NEAR(column("out", "val_loss").at(0), log("next").at(0)["loss"].get<double>(), 2e-5);
}

TEST_F(TrainLoopTest, ARunThatStoppedEarlyHasNothingLeftToDo) {
  const Words run = words(data("x", 20), {"--batch", "10", "--lr", "1e-9", "--epochs", "20", "--early-stopping", "1", "--val-split", "0.3"});
  const Finished first = run_tandem(run + Words{"--output", folder_ / "out"});
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string summary = read_text(folder_ / "out/summary.csv"), weights = read_text(folder_ / "out/model.onnx");
  fs::remove(folder_ / "out/model.onnx");
  const Finished again = run_tandem(run + Words{"--resume", folder_ / "out"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.err.find("stopped after epoch"), std::string::npos) << again.err;
  EXPECT_EQ(read_text(folder_ / "out/summary.csv"), summary);
  EXPECT_TRUE(read_text(folder_ / "out/model.onnx") == weights);
}

TEST_F(TrainLoopTest, TheEndIsACheckpointWhateverIsAskedFor) {
  const Words run = words(data("x", 16), {"--batch", "2", "--lr", "0.01"});
  ASSERT_EQ(run_tandem(run + Words{"--epochs", "2", "--output", folder_ / "whole"}).code, 0);
  ASSERT_EQ(run_tandem(run + Words{"--checkpoint-every", "100", "--output", folder_ / "out"}).code, 0);
  const Finished r = run_tandem(run + Words{"--checkpoint-every", "100", "--epochs", "2", "--resume", folder_ / "out"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(read_text(folder_ / "out/model.onnx") == read_text(folder_ / "whole/model.onnx"));
  EXPECT_NE(read_text(folder_ / "out/args.toml").find("epochs = 2\n"), std::string::npos);
}

TEST_F(TrainLoopTest, ASignalStopsAValidationAndTheRunGoesOn) {
  const Words run = words(data("x", 16), {"--batch", "8", "--lr", "0.01", "--val-data", data("val", 40000), "--save-best", "--threads", "1"});
  ASSERT_EQ(run_tandem(run + Words{"--output", folder_ / "whole"}).code, 0);
  EXPECT_EQ(run_until(run + Words{"--output", folder_ / "out", "--log", folder_ / "log"}, folder_ / "log", 2, SIGTERM), 143);
  EXPECT_FALSE(fs::exists(folder_ / "out/summary.csv"));
  const Finished rest = run_tandem(run + Words{"--resume", folder_ / "out"});
  EXPECT_EQ(rest.code, 0) << rest.err;
  for (const char* file : {"summary.csv", "best.h5", "model.onnx"})
    EXPECT_TRUE(read_text(folder_ / ("out/" + std::string(file))) == read_text(folder_ / ("whole/" + std::string(file)))) << file;
}

TEST_F(TrainLoopTest, WhatIsNoNumberIsNeverTheBest) {
  const Finished r = run_tandem(words(data("x", 16), {"--batch", "8", "--lr", "0.01", "--epochs", "5", "--val-data", data("val", 8, std::nanf("")),
                                                      "--save-best", "--early-stopping", "2", "--output", folder_ / "out"}));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("val_loss is NaN"), std::string::npos) << r.err;
  EXPECT_FALSE(fs::exists(folder_ / "out/best.h5"));
  EXPECT_EQ(column("out", "loss").size(), 2u);
}

// Half of the plateau's way down is kept where the rate itself is another.
TEST_F(TrainLoopTest, APlateauFallsFromTheNewRate) {
  const Schedule before{.kind = ScheduleKind::kPlateau, .rate = 0.01}, after{.kind = ScheduleKind::kPlateau, .rate = 0.5};
  PlateauState state = plateau_start(before);
  state.rate = 0.001f;
  plateau_move(before, state);
  EXPECT_EQ(state.rate, 0.001f);
  plateau_move(after, state);
  EXPECT_FLOAT_EQ(state.rate, 0.05f);
  EXPECT_FALSE(plateau_observe(after, state, std::nan("")));
  EXPECT_FALSE(state.best.has_value());
}

}  // namespace
}  // namespace tandem::test
