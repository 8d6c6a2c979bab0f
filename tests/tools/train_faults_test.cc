// `tandem train` and `evaluate` where a run would have ended well without having done what was asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "io/npy.h"
#include "tests/support/files.h"
#include "tests/support/node_test.h"
#include "tests/support/recorded_runs.h"
#include "tests/support/subprocess.h"
#include "tests/support/train_program.h"

namespace tandem::test {
namespace {

const char* const kSoftmax = TANDEM_SOURCE_DIR "/tests/data/training/net_a_softmax.onnx";
const char* const kLogits = TANDEM_SOURCE_DIR "/tests/data/training/net_a_linear.onnx";

// Eight samples; `nan`: the fourth has a value that is no number.
std::string make_data(const TemporaryFolder& folder, const std::string& name, std::vector<std::int32_t> labels, bool nan = false) {
  Tensor x = random_f32({8, 3, 16, 16}, 5);
  if (nan) static_cast<float*>(x.mutable_data())[3 * 16 * 16 * 3] = std::numeric_limits<float>::quiet_NaN();
  io::write_npy(folder / (name + ".npy"), x);
  io::write_npy(folder / (name + "_y.npy"), Tensor::of<std::int32_t>({8}, std::span<const std::int32_t>(labels)));
  return folder / (name + ".npy");
}

const std::vector<std::int32_t> kFive = {0, 1, 2, 3, 4, 0, 1, 2}, kTwo = {0, 1, 1, 0, 1, 0, 0, 1};

Words train_words(const char* model, const std::string& data, const Words& more) {
  return Words{"train", model, data, "--preprocess", "none", "--batch", "4", "--optimizer", "sgd"} + more;
}

void expect_refused(const Words& words, int code, const std::string& said) {
  const Finished r = run_tandem(words);
  EXPECT_EQ(r.code, code) << r.err;
  EXPECT_NE(r.err.find(said), std::string::npos) << r.err;
}

std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// One value that is no number once made the ranking for the area under the curve run for ever.
TEST(Evaluate, NaNEndsAndIsWrong) {
  const TemporaryFolder folder;
  const Finished r = run_tandem({"evaluate", kSoftmax, make_data(folder, "x", kFive, true), "--preprocess", "none", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("1 of 8 samples is NaN"), std::string::npos) << r.err;
  const auto j = nlohmann::json::parse(r.out);
  EXPECT_EQ(j["samples"], 8);
  EXPECT_TRUE(j["loss"].is_null());
  EXPECT_EQ(j["top5"], 7.0 / 8);
}

TEST(Evaluate, NothingThatCanBeReadIsAnError) {
  const TemporaryFolder folder;
  folder.write("set/a/1.png", "no image");
  folder.write("set/b/1.png", "no image");
  expect_refused({"evaluate", kSoftmax, folder / "set", "--preprocess", "none", "--bad-files", "skip", "--labels",
                  folder.write("labels.txt", "a\nb\nc\nd\ne\n")},
                 4, "none of the 2 samples");
}

// The loss of one class is the same whatever the weights are.
TEST(Train, OneClassIsRefused) {
  const TemporaryFolder folder;
  const std::string one = make_data(folder, "one", {0, 0, 0, 0, 0, 0, 0, 0});
  expect_refused(train_words(kSoftmax, one, {"--output", folder / "o"}), 4, "one class only");
  EXPECT_TRUE(lines_of(folder / "o/args.toml").empty());
}

TEST(Train, OptionsThatTheOptimizerHasNoUseForAreRefused) {
  const TemporaryFolder folder;
  const std::string data = make_data(folder, "x", kFive);
  for (const Words& more : {Words{"--optimizer", "adam", "--momentum", "0.5"},
                            {"--rho", "0.5"},
                            {"--optimizer", "adagrad", "--beta1", "0.5"},
                            {"--optimizer", "rmsprop", "--beta2", "0.5"},
                            {"--epsilon", "0.1"},
                            {"--centered"}})
    expect_refused(train_words(kSoftmax, data, more + Words{"--output", folder / "o"}), 2, "has no use for it");
  // The defaults, as args.toml holds them, say nothing.
  EXPECT_EQ(run_tandem(train_words(kSoftmax, data, {"--beta1", "0.9", "--epsilon", "1e-7", "--output", folder / "o"})).code, 0);
}

// Every batch passed over: nothing was trained, and that is no success.
TEST(Train, OnlyBatchesWithoutALossEndTheRun) {
  const TemporaryFolder folder;
  const std::string data = make_data(folder, "x", kFive, true);
  const Words words = {"--batch", "8", "--on-nan", "skip", "--bn", "frozen", "--freeze-backbone", "--output", folder / "o"};
  expect_refused(train_words(kSoftmax, data, words), 1, "loss or gradient of every batch was no number");
}

// A target of 1e30 makes the gradient 1e60: the batch that has it is left out, or the run stops, before a weight has changed.
TEST(Train, AGradientThatIsNoNumberIsFoundBeforeTheUpdate) {
  const TemporaryFolder folder;
  Tensor x = random_f32({8, 16, 16, 3}, 5);
  for (std::int64_t i = 0; i < 16 * 16 * 3; ++i) static_cast<float*>(x.mutable_data())[7 * 16 * 16 * 3 + i] *= 1e30f;
  io::write_npy(folder / "x.npy", x);
  io::write_npy(folder / "x_y.npy", Tensor::of<float>({8, 5}, std::vector<float>(40, 1e15f)));
  const Words words = train_words(kLogits, folder / "x.npy",
                                  {"--loss", "mse", "--lr", "1e-20", "--batch", "2", "--bn", "frozen", "--no-shuffle", "--freeze-backbone"});
  const Finished stopped = run_tandem(words + Words{"--output", folder / "stop", "--log", folder / "stop.jsonl"});
  EXPECT_EQ(stopped.code, 1) << stopped.err;
  EXPECT_NE(stopped.err.find("step 3 (epoch 1): the gradient's norm is inf"), std::string::npos) << stopped.err;
  const Finished r = run_tandem(words + Words{"--on-nan", "skip", "--epochs", "2", "--output", folder / "skip", "--log", folder / "skip.jsonl"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find(", 2 batches passed over)"), std::string::npos) << r.err;
  // The other three batches alone are the same run, but for the number of its steps.
  io::write_npy(folder / "six.npy", rows(x, 0, 6));
  io::write_npy(folder / "six_y.npy", Tensor::of<float>({6, 5}, std::vector<float>(30, 1e15f)));
  Words without = words;
  without[2] = folder / "six.npy";
  ASSERT_EQ(run_tandem(without + Words{"--epochs", "2", "--output", folder / "six"}).code, 0);
  EXPECT_TRUE(read_text(folder / "skip/model.onnx") == read_text(folder / "six/model.onnx"));
  EXPECT_EQ(read_text(folder / "skip/summary.csv"), read_text(folder / "six/summary.csv"));
}

TEST(Train, MoreAccumulationThanBatchesIsSaid) {
  const TemporaryFolder folder;
  const std::string data = make_data(folder, "x", kFive);
  const Finished much = run_tandem(train_words(kSoftmax, data, {"--accumulate", "5", "--epochs", "2", "--output", folder / "a"}));
  EXPECT_NE(much.err.find("--accumulate 5 is more than the 4 batches"), std::string::npos) << much.err;
  const Finished enough = run_tandem(train_words(kSoftmax, data, {"--accumulate", "4", "--epochs", "2", "--output", folder / "b"}));
  EXPECT_EQ(enough.err.find("--accumulate"), std::string::npos) << enough.err;
}

// Validation that begins later: the table keeps as many cells in every row, and a finished run says that it is.
TEST(Train, ValidationThatBeginsLaterKeepsTheTableWhole) {
  const TemporaryFolder folder;
  const std::string data = make_data(folder, "x", kFive);
  ASSERT_EQ(run_tandem(train_words(kSoftmax, data, {"--output", folder / "o"})).code, 0);
  const Finished again = run_tandem(train_words(kSoftmax, data, {"--resume", folder / "o"}));
  EXPECT_NE(again.err.find("1 epochs behind it already"), std::string::npos) << again.err;
  ASSERT_EQ(run_tandem(train_words(kSoftmax, data, {"--resume", folder / "o", "--epochs", "2", "--val-data", data})).code, 0);
  const auto lines = lines_of(folder / "o/summary.csv");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "epoch,accuracy,learning_rate,loss,val_accuracy,val_loss");
  EXPECT_TRUE(lines[1].ends_with(",,")) << lines[1];
  for (const std::string& line : lines) EXPECT_EQ(std::count(line.begin(), line.end(), ','), 5) << line;
}

TEST(Train, MessagesNameTheOption) {
  const TemporaryFolder folder;
  const std::string data = make_data(folder, "x", kFive);
  const std::string weights = folder.write("w.json", R"({"dog": 2})");
  expect_refused(train_words(kSoftmax, data, {"--class-weights", weights, "--output", folder / "o"}), 4,
                 "class \"dog\" is neither a label nor a number");
  expect_refused(train_words(kSoftmax, data, {"--checkpoint-every", "0", "--output", folder / "o"}), 2, "option --checkpoint-every");
}

TEST(Train, APatternThatNamesNothingIsToldTheNames) {
  const TemporaryFolder folder;
  const Words words = train_words(kSoftmax, make_data(folder, "x", kFive), {"--output", folder / "o", "--freeze", "nothing"});
  expect_refused(words, 2, "no parameter is called \"nothing\"; there are \"conv1/");
}

// A schedule that runs along the whole training has another rate when its length changes; a constant one has not.
TEST(Train, AnotherLengthOfAScheduleIsWarnedOf) {
  const TemporaryFolder folder;
  const std::string data = make_data(folder, "x", kFive);
  for (const char* schedule : {"cosine", "constant"}) {
    const std::string run = folder / schedule;
    ASSERT_EQ(run_tandem(train_words(kSoftmax, data, {"--schedule", schedule, "--epochs", "1", "--output", run})).code, 0);
    const Finished r = run_tandem(train_words(kSoftmax, data, {"--schedule", schedule, "--epochs", "2", "--resume", run}));
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.err.find("made with epochs = 1") != std::string::npos, std::string(schedule) == "cosine") << r.err;
  }
}

}  // namespace
}  // namespace tandem::test
