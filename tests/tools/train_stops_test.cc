// `tandem train` that ends early, is stopped, and goes on: early stopping, signals, the last checkpoint, schedules, values that are no numbers.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>
#include <sstream>

#include "importer/importer.h"
#include "io/npy.h"
#include "models/trainable.h"
#include "tests/support/files.h"
#include "tests/support/node_test.h"
#include "tests/support/subprocess.h"
#include "tests/support/train_program.h"
#include "tools/train_options.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

// So many samples of five classes.
std::string make_data(const TemporaryFolder& folder, const std::string& name, std::int64_t samples, bool nan = false) {
  Tensor x = random_f32({samples, 16, 16, 3}, 5);
  if (nan) static_cast<float*>(x.mutable_data())[0] = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < samples; ++i) labels.push_back(static_cast<std::int32_t>(i % 5));
  io::write_npy(folder / (name + ".npy"), x);
  io::write_npy(folder / (name + "_y.npy"), Tensor::of<std::int32_t>({samples}, std::span<const std::int32_t>(labels)));
  return folder / (name + ".npy");
}

Words train_words(const std::string& data, const Words& more) {
  return Words{"train", TANDEM_SOURCE_DIR "/tests/data/training/net_a_softmax.onnx", data, "--preprocess", "none", "--optimizer", "sgd", "--batch",
               "2"} +
         more;
}

std::vector<double> logged(const std::string& log, const char* key) {
  std::vector<double> values;
  std::ifstream in(log);
  for (std::string line; std::getline(in, line);) values.push_back(nlohmann::json::parse(line).at(key));
  return values;
}

// A column of summary.csv.
std::vector<double> column(const std::string& run, const std::string& name) {
  std::ifstream in(run + "/summary.csv");
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    std::istringstream cells(line);
    rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(cell);
  }
  std::vector<double> values;
  const auto at = std::find(rows.at(0).begin(), rows.at(0).end(), name) - rows[0].begin();
  for (std::size_t r = 1; r < rows.size(); ++r) values.push_back(std::strtod(rows[r].at(static_cast<std::size_t>(at)).c_str(), nullptr));
  return values;
}

// Four batches an epoch, an update every three: rates are those of the batch all the same.
TEST(Train, SchedulesCountBatchesWhenGradientsAreAccumulated) {
  const TemporaryFolder folder;
  const Words words = train_words(make_data(folder, "x", 8), {"--lr", "0.01"});
  const auto rates = [&](const Words& more) {
    const std::string name = more[1].substr(0, 4);
    const Finished r = run_tandem(words + more + Words{"--output", folder / name, "--log", folder / (name + ".jsonl")});
    EXPECT_EQ(r.code, 0) << r.err;
    return logged(folder / (name + ".jsonl"), "lr");
  };
  const auto cosine = rates({"--schedule", "cosine", "--epochs", "2", "--accumulate", "3"});
  ASSERT_EQ(cosine.size(), 8u);
  for (std::size_t b = 0; b < 8; ++b)
    EXPECT_NEAR(cosine[b], 0.005 * (1 + std::cos(std::numbers::pi * static_cast<double>(b) / 8)), 1e-9) << "batch " << b;
  const auto step = rates({"--schedule", "step:at=1", "--epochs", "2", "--accumulate", "3"});
  ASSERT_EQ(step.size(), 8u);
  for (std::size_t b = 0; b < 8; ++b) EXPECT_NEAR(step[b], b < 4 ? 0.01 : 0.001, 1e-9) << "batch " << b;
  // The only update is that of the fourth batch, whose rate is a quarter of the first's.
  const auto line = rates({"--schedule", "polynomial", "--accumulate", "4"});
  EXPECT_NEAR(line.at(3), 0.0025, 1e-9);
  const Words quarter = train_words(folder / "x.npy", {"--lr", "0.0025", "--accumulate", "4", "--output", folder / "quarter"});
  ASSERT_EQ(run_tandem(quarter).code, 0);
  EXPECT_TRUE(read_text(folder / "quarter/model.onnx") == read_text(folder / "poly/model.onnx"));
}

// Batches of 3, 3 and 2 samples: the mean over the samples of the steps' losses. Validation sees the weights that the last step left, or their
// average.
TEST(Train, LossesHoldThePenaltyAsKerasDoes) {
  const TemporaryFolder folder;
  const std::string data = make_data(folder, "x", 8);
  const Words words = {"--l2", "0.05", "--lr", "0.05", "--batch", "3", "--epochs", "2", "--val-data", data};
  for (const Words& more : {Words{}, {"--ema", "0.5"}}) {
    const std::string run = folder / ("run" + std::to_string(more.size())), log = run + ".jsonl";
    const Finished r = run_tandem(train_words(data, words + more + Words{"--output", run, "--log", log}));
    ASSERT_EQ(r.code, 0) << r.err;
    const auto losses = logged(log, "loss"), samples = logged(log, "samples"), found = column(run, "loss");
    ASSERT_EQ(losses.size(), 6u);
    for (std::size_t e = 0; e < 2; ++e) {
      double sum = 0;
      for (std::size_t s = 3 * e; s < 3 * e + 3; ++s) sum += losses[s] * samples[s];
      EXPECT_NEAR(found.at(e), sum / 8, 1e-9);
    }
    const Graph graph = import_file(run + "/model.onnx");
    double squares = 0;
    for (const models::TrainableArray& a : models::trainable_arrays(graph)) {
      for (const double w : graph.value(a.value).constant.made().to_doubles()) squares += a.is_kernel ? w * w : 0;
    }
    const auto measured = nlohmann::json::parse(run_tandem({"evaluate", run + "/model.onnx", data, "--json"}).out);
    EXPECT_NEAR(column(run, "val_loss").at(1), measured["loss"].get<double>() + 0.05 * squares, 1e-5) << more.size();
  }
}

// A rate that moves nothing: the first epoch stays the best.
TEST(Train, StoppedEarlyItStaysStopped) {
  const TemporaryFolder folder;
  const std::string run = folder / "run", log = folder / "log.jsonl";
  const Words words = train_words(make_data(folder, "x", 8), {"--lr", "1e-30", "--no-shuffle", "--epochs", "9", "--monitor", "loss", "--log", log});
  const Finished first = run_tandem(words + Words{"--early-stopping", "2", "--output", run});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.err.find("stopped early at epoch 3: no better loss for 2 epochs"), std::string::npos) << first.err;
  EXPECT_EQ(column(run, "loss").size(), 3u);
  // As if it had been killed behind its last checkpoint.
  const std::string model = read_text(run + "/model.onnx"), weights = read_text(run + "/weights.h5"), steps = read_text(log);
  fs::remove(run + "/model.onnx");
  fs::remove(run + "/weights.h5");
  const Finished again = run_tandem(words + Words{"--early-stopping", "2", "--resume", run});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.err.find("stopped early at epoch 3"), std::string::npos) << again.err;
  EXPECT_EQ(again.err.find("Epoch "), std::string::npos) << again.err;
  EXPECT_TRUE(read_text(run + "/model.onnx") == model && read_text(run + "/weights.h5") == weights);
  EXPECT_EQ(read_text(log), steps);
  // More patience goes on.
  const Finished more = run_tandem(words + Words{"--early-stopping", "4", "--resume", run});
  EXPECT_NE(more.err.find("stopped early at epoch 5"), std::string::npos) << more.err;
}

TEST(Train, AFinishedRunLeavesACheckpointOfItsEnd) {
  const TemporaryFolder folder;
  const std::string data = make_data(folder, "x", 8);
  for (const char* every : {"100", "2epochs"}) {
    const std::string whole = folder / (std::string("whole") + every), parts = folder / (std::string("parts") + every);
    const Words words = train_words(data, {"--lr", "0.01", "--checkpoint-every", every});
    ASSERT_EQ(run_tandem(words + Words{"--epochs", "4", "--output", whole, "--log", whole + ".jsonl"}).code, 0);
    ASSERT_EQ(run_tandem(words + Words{"--epochs", "3", "--output", parts, "--log", parts + ".jsonl"}).code, 0);
    const Finished r = run_tandem(words + Words{"--epochs", "4", "--resume", parts, "--log", parts + ".jsonl"});
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.err.find("Epoch 3/4"), std::string::npos) << r.err;
    EXPECT_EQ(steps_of(whole + ".jsonl"), steps_of(parts + ".jsonl"));
    expect_same_run(whole, parts);
  }
}

TEST(Train, AValueThatIsNoNumberIsNeverTheBest) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const Words words = train_words(make_data(folder, "x", 8), {"--lr", "0.01", "--epochs", "9", "--early-stopping", "2", "--save-best", "--val-data",
                                                              make_data(folder, "v", 5, true), "--schedule", "plateau:factor=0.5,patience=1"});
  const Finished r = run_tandem(words + Words{"--output", run});
  ASSERT_EQ(r.code, 0) << r.err;
  const std::string said = "val_loss is no number";
  const std::size_t at = r.err.find(said);
  EXPECT_NE(at, std::string::npos) << r.err;
  EXPECT_EQ(r.err.find(said, at + 1), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("stopped early at epoch 2"), std::string::npos) << r.err;
  EXPECT_FALSE(fs::exists(run + "/best.h5"));
  // What a checkpoint keeps of it is not lost.
  ASSERT_EQ(run_tandem(words + Words{"--early-stopping", "3", "--resume", run}).code, 0);
  const auto losses = column(run, "val_loss"), rates = column(run, "learning_rate");
  ASSERT_EQ(losses.size(), 3u);
  for (const double loss : losses) EXPECT_TRUE(std::isnan(loss));
  EXPECT_NEAR(rates[1], 0.005, 1e-9);  // no improvement in the first epoch already
}

// Two reductions by a half in three epochs.
TEST(Train, PlateauGoesOnFromAChangedRate) {
  const TemporaryFolder folder;
  const std::string data = make_data(folder, "x", 8), run = folder / "run", log = folder / "log.jsonl";
  const Words words = train_words(data, {"--no-shuffle", "--monitor", "loss", "--schedule", "plateau:factor=0.5,patience=1", "--log", log});
  ASSERT_EQ(run_tandem(words + Words{"--lr", "1e-30", "--epochs", "5", "--output", folder / "whole"}).code, 0);
  const auto whole = logged(log, "lr");
  ASSERT_EQ(run_tandem(words + Words{"--lr", "1e-30", "--epochs", "3", "--output", run}).code, 0);
  ASSERT_EQ(run_tandem(words + Words{"--lr", "1e-30", "--epochs", "5", "--resume", run}).code, 0);
  EXPECT_EQ(logged(log, "lr"), whole);
  expect_same_run(folder / "whole", run);
  ASSERT_EQ(whole.size(), 20u);
  for (std::size_t s = 0; s < 20; ++s) EXPECT_NEAR(whole[s] / (1e-30 * std::pow(0.5, std::max(0, static_cast<int>(s / 4) - 1))), 1, 1e-6) << s;
  // After five epochs four reductions.
  const Finished r = run_tandem(words + Words{"--lr", "8e-30", "--epochs", "6", "--resume", run});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("plateau: 8e-30 was reduced 4 times so far: the rate is 5e-31"), std::string::npos) << r.err;
  EXPECT_NEAR(logged(log, "lr").at(20) / 5e-31, 1, 1e-6);
}

// In the middle of the first and of the last epoch's validation.
TEST(Train, StoppedWhileItValidatesItGoesOnToTheSameBits) {
  const TemporaryFolder folder;
  const Words words = train_words(make_data(folder, "x", 8), {"--lr", "0.01", "--epochs", "2", "--save-best", "--early-stopping", "3", "--schedule",
                                                              "plateau:factor=0.5,patience=1,delta=9", "--val-data", make_data(folder, "v", 6000)});
  ASSERT_EQ(run_tandem(words + Words{"--output", folder / "whole"}).code, 0);
  for (const std::size_t steps : {4u, 8u}) {
    const std::string run = folder / ("stop" + std::to_string(steps)), log = run + ".jsonl";
    EXPECT_EQ(run_until(words + Words{"--output", run, "--log", log}, log, steps, steps == 4 ? SIGINT : SIGTERM, 50), steps == 4 ? 130 : 143);
    EXPECT_EQ(count_lines(read_text(log)), steps);
    EXPECT_EQ(count_lines(read_text(run + "/summary.csv")), steps == 4 ? 0u : 2u);
    EXPECT_FALSE(fs::exists(run + "/model.onnx"));
    EXPECT_NE(read_text(run + "/report.html").find("stopped by a signal"), std::string::npos);
    const Finished rest = run_tandem(words + Words{"--resume", run, "--log", log, "--devices", "cpu:2"});
    ASSERT_EQ(rest.code, 0) << rest.err;
    expect_same_run(folder / "whole", run);
    EXPECT_TRUE(read_text(folder / "whole/best.h5") == read_text(run + "/best.h5"));
  }
}

TEST(Train, StoppedBySigusr1AndSavedBySighup) {
  const TemporaryFolder folder;
  const Words words = train_words(make_data(folder, "x", 8),
                                  {"--lr", "0.001", "--epochs", "6", "--steps-per-epoch", "100", "--repeat", "--checkpoint-every", "100000"});
  const std::string saved = folder / "saved", stopped = folder / "stopped";
  EXPECT_EQ(run_until(words + Words{"--output", saved, "--log", saved + ".jsonl"}, saved + ".jsonl", 3, SIGHUP), 0);
  EXPECT_EQ(count_lines(read_text(saved + ".jsonl")), 600u);
  EXPECT_TRUE(fs::exists(saved + "/checkpoint/previous.h5"));  // besides the one of its end
  EXPECT_EQ(run_until(words + Words{"--output", stopped, "--log", stopped + ".jsonl"}, stopped + ".jsonl", 3, SIGUSR1), 143);
  EXPECT_TRUE(fs::exists(stopped + "/checkpoint/last.h5"));
  EXPECT_LT(count_lines(read_text(stopped + ".jsonl")), 600u);
  ASSERT_EQ(run_tandem(words + Words{"--resume", stopped, "--log", stopped + ".jsonl"}).code, 0);
  expect_same_run(saved, stopped);
}

TEST(Train, ALogThatCannotBeWrittenIsFoundBeforeTheFirstStep) {
  const TemporaryFolder folder;
  const Finished r = run_tandem(train_words(make_data(folder, "x", 8), {"--log", folder / "none/log.jsonl", "--output", folder / "run"}));
  EXPECT_EQ(r.code, 4) << r.err;
  EXPECT_EQ(r.err.find("Epoch"), std::string::npos) << r.err;
}

TEST(Train, ArgumentsAreAllThereAndFollowTheRun) {
  cli::TrainOptions options;
  cli::OptionSet all;
  cli::declare_train_options(all, options);
  for (const cli::OptionSpec& spec : all.specs()) EXPECT_TRUE(spec.value) << spec.key();
  const TemporaryFolder folder;
  const std::string data = make_data(folder, "x", 8), run = folder / "run", labels = folder.write("l.txt", "a\nb\nc\nd\ne\nf\n");
  ASSERT_EQ(run_tandem(train_words(data, {"--lr", "0.01", "--devices", "cpu:2", "--threads", "2", "--memory", "limit=2GiB", "--labels", labels,
                                          "--log", folder / "log.jsonl", "--classes", "6", "--output", run}))
                .code,
            0);
  const auto holds = [&](const std::string& line) {
    const std::string text = read_text(run + "/args.toml");
    EXPECT_NE(text.find("\n" + line + "\n"), std::string::npos) << line << " in\n" << text;
  };
  for (const std::string& line :
       {"DATA = \"" + data + "\"", "log = \"" + folder / "log.jsonl" + "\"", "labels = \"" + labels + "\"", std::string("devices = \"cpu:2\""),
        std::string("threads = 2"), std::string("memory = \"limit=2GiB\""), std::string("workers = 4"), std::string("classes = \"6\""),
        std::string("loss = \"categorical_crossentropy\""), std::string("preprocess = \"none\""), std::string("image-size = \"16x16\""),
        std::string("lr = 0.01"), std::string("epochs = 1"), std::string("monitor = \"loss\""), std::string("no-shuffle = false")})
    holds(line);
  // It is enough to go on, and says what the run was made with since.
  const Finished r = run_tandem({"train", "--config", run + "/args.toml", "--resume", run, "--epochs", "2", "--lr", "0.5"});
  ASSERT_EQ(r.code, 0) << r.err;
  holds("epochs = 2");
  holds("lr = 0.5");
}

}  // namespace
}  // namespace tandem::test
