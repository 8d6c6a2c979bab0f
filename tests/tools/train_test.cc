// `tandem train` as its users run it: what the output folder holds, stopping and going on to the same bits, what is refused. A network of 785
// parameters (tests/data/training) and the trained Xception of models/xception_mini, on a few made-up images.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "io/checkpoint.h"
#include "io/hdf5.h"
#include "io/write_png.h"
#include "runtime/base/safe_file.h"
#include "tests/support/files.h"
#include "tests/support/soak.h"
#include "tests/support/subprocess.h"
#include "tests/support/train_program.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

std::string small_network() { return TANDEM_SOURCE_DIR "/tests/data/training/net_a_softmax.onnx"; }

io::Pixels picture(int seed, int side) {
  io::Pixels p{side, side, 3, {}};
  for (int i = 0; i < side * side * 3; ++i) p.data.push_back(static_cast<std::uint8_t>((i * (seed + 3) / 7 + seed * 40 + i % 3 * seed) & 255));
  return p;
}

constexpr int kClasses = 3, kPerClass = 7;

// Class folders a, b, c.
void make_images(const TemporaryFolder& folder, int side = 16) {
  for (int c = 0; c < kClasses; ++c) {
    const std::string of_class = folder / ("set/" + std::string(1, static_cast<char>('a' + c)));
    fs::create_directories(of_class);
    for (int i = 0; i < kPerClass; ++i) io::write_png(of_class + "/" + std::to_string(i) + ".png", picture(10 * c + i, side));
  }
}

Words train_words(const TemporaryFolder& folder, const Words& more = {}) {
  return Words{"train", small_network(), folder / "set", "--preprocess", "tf", "--batch", "8", "--lr", "0.01"} + more;
}

TEST(Train, TheOutputFolderIsCompleteAndTheModelPredicts) {
  const TemporaryFolder folder;
  make_images(folder);
  const Finished r = run_tandem(
      train_words(folder, {"--epochs", "3", "--val-split", "0.2", "--save-best", "--output", folder / "out", "--log", folder / "log.jsonl"}));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(read_text(folder / "out/labels.txt"), "a\nb\nc\n");
  const std::string summary = read_text(folder / "out/summary.csv");
  EXPECT_TRUE(summary.starts_with("epoch,accuracy,learning_rate,loss,val_accuracy,val_loss\n0,")) << summary;
  EXPECT_EQ(count_lines(summary), 4u);
  EXPECT_EQ(count_lines(read_text(folder / "log.jsonl")), 9u);  // 18 samples in batches of 8
  EXPECT_NE(read_text(folder / "out/args.toml").find("lr = 0.01"), std::string::npos);
  for (const char* name : {"weights.h5", "best.h5", "model.onnx", "checkpoint/last.h5", "checkpoint/previous.h5"})
    EXPECT_TRUE(fs::exists(folder / ("out/" + std::string(name)))) << name;
  int event_files = 0;
  for (const auto& entry : fs::directory_iterator(folder / "out")) {
    if (!entry.path().filename().string().starts_with("events.out.tfevents.")) continue;
    ++event_files;
    const std::string events = read_text(entry.path());  // their form: tests/io/tensorboard_test.cc
    for (const char* tag : {"epoch_loss", "epoch_accuracy", "epoch_val_loss", "epoch_val_accuracy", "epoch_learning_rate"}) {
      int found = 0;
      for (std::size_t at = events.find(tag); at != std::string::npos; at = events.find(tag, at + 1)) ++found;
      EXPECT_EQ(found, 3) << tag;
    }
  }
  EXPECT_EQ(event_files, 1);

  EXPECT_TRUE(run_tandem({"weights", "diff", folder / "out/weights.h5", folder / "out/model.onnx"}).out.ends_with("\nequal\n"));
  const Finished predicted = run_tandem({"predict", folder / "out/model.onnx", folder / "set/b", "--out", folder / "rows.csv", "--topk", "3"});
  ASSERT_EQ(predicted.code, 0) << predicted.err;  // the record and the labels travel with the model
  EXPECT_EQ(count_lines(read_text(folder / "rows.csv")), 1u + kPerClass);
  const Finished again = run_tandem(train_words(folder, {"--output", folder / "out"}));
  EXPECT_EQ(again.code, 2) << again.err;  // a run is not written over
}

TEST(Train, StoppedBySignalsItGoesOnToTheSameBits) {
  const TemporaryFolder folder;
  make_images(folder);
  const Words run = {"--epochs",   "12",     "--augment", "flip,crop,mixup", "--dropout", "0.3",          "--val-split", "0.2",   "--schedule",
                     "cosine",     "--seed", "5",         "--optimizer",     "adam",      "--accumulate", "2",           "--ema", "0.9",
                     "--save-best"};
  const std::string whole_log = folder / "whole.jsonl";
  const Finished whole = run_tandem(train_words(folder, run + Words{"--output", folder / "whole", "--threads", "1", "--log", whole_log}));
  ASSERT_EQ(whole.code, 0) << whole.err;
  ASSERT_EQ(steps_of(whole_log).size(), 36u);
  struct Stop {
    std::size_t steps;
    int signal, code;
    const char *devices, *threads;
  };
  std::vector<Stop> stops = {{1, SIGTERM, 143, "cpu:2", "2"}, {8, SIGINT, 130, "cpu:3", "1"}, {17, SIGTERM, 143, "cpu:8", "2"}};
  if (test::soak()) {
    stops.clear();
    for (std::size_t steps = 1; steps <= 20; ++steps) stops.push_back({steps, SIGTERM, 143, steps % 2 == 0 ? "cpu:4" : "cpu:3", "2"});
  }
  for (const Stop& stop : stops) {
    const std::string name = "stop" + std::to_string(stop.steps), log = folder / (name + ".jsonl");
    EXPECT_EQ(run_until(train_words(folder, run + Words{"--output", folder / name, "--log", log}), log, stop.steps, stop.signal), stop.code);
    const Finished rest =
        run_tandem(train_words(folder, run + Words{"--resume", folder / name, "--log", log, "--devices", stop.devices, "--threads", stop.threads}));
    ASSERT_EQ(rest.code, 0) << rest.err;
    EXPECT_EQ(steps_of(log), steps_of(whole_log)) << name;
    expect_same_run(folder / "whole", folder / name);
    EXPECT_TRUE(read_text(folder / "whole/best.h5") == read_text(folder / (name + "/best.h5")));
  }
}

TEST(Train, KilledItGoesOnFromItsLastCheckpoint) {
  if (!std::string(TANDEM_SANITIZE).empty()) GTEST_SKIP() << "takes minutes with scalar kernels; stops by signals stay";
  const TemporaryFolder folder;
  make_images(folder);
  const Words run = {"--epochs", "4",          "--steps-per-epoch",      "10",   "--repeat", "--checkpoint-every",
                     "5",        "--schedule", "exponential:factor=0.9", "--bn", "local"};
  const std::string whole_log = folder / "whole.jsonl";
  ASSERT_EQ(run_tandem(train_words(folder, run + Words{"--output", folder / "whole", "--threads", "2", "--log", whole_log})).code, 0);
  std::vector<std::size_t> kills = {6, 11, 16};
  if (test::soak()) {
    kills.clear();
    for (std::size_t steps = 6; steps <= 25; ++steps) kills.push_back(steps);
  }
  for (const std::size_t steps : kills) {
    const std::string name = "kill" + std::to_string(steps), log = folder / (name + ".jsonl");
    EXPECT_EQ(run_until(train_words(folder, run + Words{"--output", folder / name, "--log", log}), log, steps, SIGKILL), -SIGKILL);
    const Finished rest =
        run_tandem(train_words(folder, run + Words{"--resume", folder / name, "--devices", "cpu:4", "--threads", "1", "--log", log}));
    ASSERT_EQ(rest.code, 0) << rest.err;
    EXPECT_EQ(steps_of(log), steps_of(whole_log)) << name;  // those behind the checkpoint are not there twice
    expect_same_run(folder / "whole", folder / name);
  }
}

TEST(Train, ADamagedCheckpointGivesWayToThePreviousOne) {
  const TemporaryFolder folder;
  make_images(folder);
  const Words run = {"--epochs", "4", "--optimizer", "momentum"};
  ASSERT_EQ(run_tandem(train_words(folder, run + Words{"--output", folder / "whole"})).code, 0);
  const std::string last = folder / "whole/checkpoint/last.h5", weights = folder / "whole/weights.h5", want = read_text(weights);
  std::string bytes = read_text(last);
  const auto goes_on = [&](const std::string& what, int code) {
    fs::remove(weights);
    const Finished r = run_tandem(train_words(folder, run + Words{"--resume", folder / "whole"}));
    EXPECT_EQ(r.code, code) << what << ": " << r.err;
    EXPECT_NE(r.err.find("last.h5"), std::string::npos) << what << ": " << r.err;
    if (code == 0) {
      EXPECT_NE(r.err.find("previous.h5"), std::string::npos) << what << ": " << r.err;
      EXPECT_TRUE(read_text(weights) == want) << what;
    }
  };
  const std::string previous = folder / "whole/checkpoint/previous.h5", second = read_text(previous);
  // Single bits, in places enough that some hold weights; the file cut; no file.
  for (std::size_t at = bytes.size() / 3; at < bytes.size() / 3 * 2; at += 64) bytes[at] = static_cast<char>(bytes[at] ^ 4);
  folder.write("whole/checkpoint/last.h5", bytes);
  goes_on("flipped bits", 0);
  folder.write("whole/checkpoint/last.h5", bytes.substr(0, bytes.size() / 3));
  folder.write("whole/checkpoint/previous.h5", second);
  goes_on("a cut file", 0);
  fs::remove(last);
  folder.write("whole/checkpoint/previous.h5", second);
  goes_on("no file", 0);
  folder.write("whole/checkpoint/last.h5", bytes.substr(0, 100));
  folder.write("whole/checkpoint/previous.h5", "no HDF5");
  goes_on("both damaged", 4);
}

// args.toml holds every setting: given back by --config it makes the same run.
TEST(Train, ItsArgumentsGivenBackMakeTheSameRun) {
  const TemporaryFolder folder;
  make_images(folder);
  const Words run = {"--epochs",    "2",
                     "--optimizer", "rmsprop",
                     "--momentum",  "0.8",
                     "--centered",  "--weight-decay",
                     "0.01",        "--l2",
                     "0.02",        "--schedule",
                     "cosine",      "--min-lr",
                     "0.001",       "--warmup-epochs",
                     "1",           "--val-split",
                     "0.2",         "--ema",
                     "0.9",         "--augment",
                     "flip,crop",   "--accumulate",
                     "2",           "--dropout",
                     "0.2",         "--global-clip-norm",
                     "1",           "--seed",
                     "9",           "--freeze",
                     "conv1/*",     "--bn",
                     "local",       "--shards",
                     "3",           "--label-smoothing",
                     "0.1",         "--no-shuffle"};
  ASSERT_EQ(run_tandem(train_words(folder, run + Words{"--output", folder / "first"})).code, 0);
  Words again = train_words(folder, {});
  again.resize(3);  // train MODEL DATA
  const Finished r = run_tandem(again + Words{"--config", folder / "first/args.toml", "--output", folder / "second"});
  ASSERT_EQ(r.code, 0) << r.err;
  expect_same_run(folder / "first", folder / "second");
  EXPECT_EQ(read_text(folder / "first/args.toml"), read_text(folder / "second/args.toml"));
}

TEST(Train, ResumeNamesTheOptionThatDiffers) {
  const TemporaryFolder folder;
  make_images(folder);
  ASSERT_EQ(run_tandem(train_words(folder, {"--output", folder / "out", "--optimizer", "momentum"})).code, 0);
  folder.write("weights.json", "[1, 2, 3]");
  const std::vector<Words> others = {{"--batch", "7"},
                                     {"--seed", "1"},
                                     {"--ema", "0.9"},
                                     {"--accumulate", "2"},
                                     {"--bn", "local"},
                                     {"--shards", "4"},
                                     {"--precision", "bf16"},
                                     {"--augment", "flip"},
                                     {"--label-smoothing", "0.1"},
                                     {"--class-weights", folder / "weights.json"},
                                     {"--freeze", "conv1/*"},
                                     {"--freeze-backbone"},
                                     {"--dropout", "0.1"},
                                     {"--val-split", "0.2"},
                                     {"--optimizer-convention", "torch"},
                                     {"--bn-variance", "unbiased"},
                                     {"--no-shuffle"}};
  for (const Words& other : others) {
    const Finished r = run_tandem(train_words(folder, Words{"--resume", folder / "out", "--optimizer", "momentum", "--epochs", "2"} + other));
    EXPECT_EQ(r.code, 2) << other[0] << ": " << r.err;
    std::string named = other[0].substr(2);
    named = named == "batch" ? "batch-size" : named;
    EXPECT_NE(r.err.find("made with " + named + " ="), std::string::npos) << other[0] << ": " << r.err;
  }
  // Numbers of the optimizer may be changed on purpose; it is said.
  for (const Words& other : {Words{"--lr", "0.02"}, {"--momentum", "0.8"}, {"--l2", "0.1"}, {"--global-clip-norm", "1"}}) {
    const Finished r = run_tandem(train_words(folder, Words{"--resume", folder / "out", "--optimizer", "momentum"} + other));
    EXPECT_EQ(r.code, 0) << other[0] << ": " << r.err;
    EXPECT_NE(r.err.find("made with " + other[0].substr(2) + " ="), std::string::npos) << other[0] << ": " << r.err;
  }
  // Another network under whatever name; the same one under another name is the same.
  Words words = train_words(folder, {"--resume", folder / "out", "--optimizer", "momentum"});
  const std::string copy = folder.write("copy.onnx", read_text(words[1]));
  words[1] = copy;
  EXPECT_EQ(run_tandem(words).code, 0);
  folder.write("copy.onnx", read_text(trained_network()));
  const Finished other_network = run_tandem(words);
  EXPECT_EQ(other_network.code, 2) << other_network.err;
  EXPECT_EQ(run_tandem(train_words(folder, {"--resume", folder / "none"})).code, 4);
  EXPECT_FALSE(fs::exists(folder / "none"));
  EXPECT_EQ(run_tandem(train_words(folder, {"--resume", folder / "out", "--output", folder / "two", "--optimizer", "momentum"})).code, 2);
}

TEST(Train, WhatCannotBeTrainedIsRefusedBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  make_images(folder);
  fs::create_directories(folder / "empty/a");
  struct Case {
    Words words;
    int code;
    const char* said;
  };
  const std::vector<Case> cases = {
      {train_words(folder, {"--freeze", "nothing*"}), 2, "nothing*"},
      {train_words(folder, {"--train", "conv9/kernel"}), 2, "conv9/kernel"},
      {train_words(folder, {"--freeze", "*"}), 2, "frozen"},
      {train_words(folder, {"--devices", "cpu:9"}), 2, "--shards"},
      {train_words(folder, {"--classes", "2"}), 2, "--classes"},
      {train_words(folder, {"--val-split", "0.2", "--val-data", folder / "set"}), 2, "--val-data"},
      {train_words(folder, {"--val-split", "0.01"}), 2, "validation"},
      {train_words(folder, {"--monitor", "val_loss"}), 2, "val_loss"},
      {train_words(folder, {"--checkpoint-every", "2weeks"}), 2, "2weeks"},
      {train_words(folder, {"--loss", "mse"}), 4, "numbers"},
      {{"train", small_network(), folder / "empty", "--preprocess", "tf"}, 4, "empty"},
      {{"train", small_network(), folder / "missing", "--preprocess", "tf"}, 4, "missing"},
  };
  for (const Case& c : cases) {
    const Finished r = run_tandem(c.words + Words{"--output", folder / "out"});
    EXPECT_EQ(r.code, c.code) << c.said << ": " << r.err;
    EXPECT_NE(r.err.find(c.said), std::string::npos) << r.err;
    EXPECT_FALSE(fs::exists(folder / "out")) << c.said;
  }
}

TEST(Train, ALimitThatIsTooSmallIsSaidBeforeTheFirstStep) {
  const TemporaryFolder folder;
  make_images(folder, 64);
  const Words words = {"train", trained_network(), folder / "set", "--preprocess", "tf", "--log", folder / "log.jsonl", "--memory", "limit=40MiB"};
  const Finished small = run_tandem(words + Words{"--batch", "21", "--output", folder / "out"});
  EXPECT_EQ(small.code, 5) << small.err;
  EXPECT_NE(small.err.find("the limit is 40"), std::string::npos) << small.err;
  EXPECT_FALSE(fs::exists(folder / "log.jsonl"));
  EXPECT_FALSE(fs::exists(folder / "out/checkpoint"));
  // What is said to fit does (a sanitizer's own memory leaves no batch).
  const std::string advice = "a batch of ";
  const std::size_t at = small.err.find(advice);
  if (at == std::string::npos) return;
  const std::string fits = std::to_string(std::stoi(small.err.substr(at + advice.size())));
  const Finished r = run_tandem(words + Words{"--batch", fits, "--output", folder / "less"});
  EXPECT_EQ(r.code, 0) << r.err;
}

TEST(Train, ALossThatIsNoNumberStopsTheRun) {
  const TemporaryFolder folder;
  make_images(folder);
  const Words wild = {"train", small_network(), folder / "set", "--preprocess", "tf", "--batch", "8", "--optimizer", "sgd"};
  ASSERT_EQ(run_tandem(wild + Words{"--lr", "0.01", "--output", folder / "out"}).code, 0);
  // Nothing was saved before it.
  const Finished first = run_tandem(wild + Words{"--lr", "1e38", "--epochs", "3", "--output", folder / "first", "--log", folder / "first.jsonl"});
  EXPECT_EQ(first.code, 1) << first.err;
  EXPECT_NE(first.err.find("step "), std::string::npos) << first.err;
  EXPECT_NE(first.err.find("no checkpoint"), std::string::npos) << first.err;
  // A checkpoint after each step: what is kept has finite weights.
  const Finished each = run_tandem(wild + Words{"--lr", "1e38", "--epochs", "3", "--output", folder / "each", "--checkpoint-every", "1"});
  EXPECT_EQ(each.code, 1) << each.err;
  if (fs::exists(folder / "each/checkpoint/last.h5")) {
    std::string note;
    for (const Layer& layer : io::load_checkpoint(folder / "each/checkpoint", note).layers) {
      for (const LayerWeight& w : layer.weights) {
        for (const double v : w.read().to_doubles()) ASSERT_TRUE(std::isfinite(v)) << w.name;
      }
    }
  }
}

// One sample of 21 holds a NaN: the batch of two that it falls in is passed over, in each epoch.
TEST(Train, ABatchWithoutALossIsPassedOverWhenAskedFor) {
  const TemporaryFolder folder;
  constexpr std::int64_t kSamples = 21, kSize = 16 * 16 * 3;
  Tensor x(DType::kF32, {kSamples, 16, 16, 3}), y(DType::kI32, {kSamples});
  for (std::int64_t i = 0; i < kSamples * kSize; ++i) x.as_mutable<float>()[static_cast<std::size_t>(i)] = static_cast<float>(i * 7 % 64) / 64;
  x.as_mutable<float>()[5 * kSize + 100] = std::numeric_limits<float>::quiet_NaN();
  for (std::int64_t i = 0; i < kSamples; ++i) y.as_mutable<std::int32_t>()[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i % 5);
  const io::H5Image image;
  image.root().write("x", x);
  image.root().write("y", y);
  save_file(folder / "data.h5", image.bytes());
  const Words run = {"train", small_network(), folder / "data.h5", "--preprocess", "none", "--batch", "2", "--lr", "0.01"};
  const Finished stopped = run_tandem(run + Words{"--output", folder / "stopped"});
  EXPECT_EQ(stopped.code, 1) << stopped.err;
  EXPECT_NE(stopped.err.find("the loss is "), std::string::npos) << stopped.err;
  const Words skip = {"--on-nan", "skip"};
  const Finished r = run_tandem(run + skip + Words{"--epochs", "2", "--output", folder / "out", "--log", folder / "log.jsonl"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find(", 2 batches passed over)"), std::string::npos) << r.err;
  const std::string summary = read_text(folder / "out/summary.csv");
  EXPECT_EQ(summary.find("nan"), std::string::npos) << summary;
  EXPECT_EQ(count_lines(summary), 3u);
  EXPECT_EQ(count_lines(read_text(folder / "log.jsonl")), 22u);
  const Finished more = run_tandem(run + skip + Words{"--epochs", "3", "--resume", folder / "out"});
  EXPECT_EQ(more.code, 0) << more.err;
}

TEST(Train, BitsDoNotDependOnLoadersThreadsOrDevices) {
  const TemporaryFolder folder;
  make_images(folder);
  const Words run = {"--augment", "flip,crop,color,erase,cutmix", "--epochs", "2", "--dropout", "0.2"};
  struct Setting {
    const char *workers, *threads, *devices;
  };
  std::string want;
  for (const Setting& s : {Setting{"1", "1", "cpu"}, Setting{"4", "2", "cpu:3"}, Setting{"64", "3", "cpu:8"}}) {
    const std::string name = std::string("workers") + s.workers;
    const Finished r = run_tandem(
        train_words(folder, run + Words{"--output", folder / name, "--workers", s.workers, "--threads", s.threads, "--devices", s.devices}));
    ASSERT_EQ(r.code, 0) << r.err;
    const std::string found = read_text(folder / (name + "/weights.h5"));
    ASSERT_FALSE(found.empty());
    if (want.empty()) want = found;
    EXPECT_TRUE(found == want) << name;
  }
}

TEST(Train, ClassFoldersAndAListOfThemAreTheSameData) {
  const TemporaryFolder folder;
  make_images(folder);
  std::string list = "path,label\n";
  for (int c = 0; c < kClasses; ++c) {
    for (int i = 0; i < kPerClass; ++i)
      list += "set/" + std::string(1, static_cast<char>('a' + c)) + "/" + std::to_string(i) + ".png," + std::to_string(c) + "\n";
  }
  folder.write("list.csv", list);
  ASSERT_EQ(run_tandem(train_words(folder, {"--output", folder / "folders"})).code, 0);
  Words words = train_words(folder, {"--output", folder / "list"});
  words[2] = folder / "list.csv";
  const Finished r = run_tandem(words);
  ASSERT_EQ(r.code, 0) << r.err;
  const std::string said = run_tandem({"weights", "diff", folder / "folders/weights.h5", folder / "list/weights.h5"}).out;
  EXPECT_TRUE(said.ends_with("\nequal\n")) << said;
  EXPECT_EQ(read_text(folder / "folders/summary.csv"), read_text(folder / "list/summary.csv"));
}

// Layers whose arrays differ between two files, from the table of `weights diff`.
std::set<std::string> layers_that_differ(const std::string& a, const std::string& b) {
  std::set<std::string> layers;
  for (const auto& row : nlohmann::json::parse(run_tandem({"weights", "diff", a, b, "--json"}).out)) {
    const std::string name = row.at("name");
    if (row.at("largest") != 0.0) layers.insert(name.substr(0, name.find('/')));
  }
  return layers;
}

TEST(Train, WhatIsFrozenKeepsItsBits) {
  const TemporaryFolder folder;
  make_images(folder, 64);
  const Words words = {"train", trained_network(), folder / "set", "--preprocess", "tf", "--batch", "8", "--classes", "5"};
  const Finished head = run_tandem(words + Words{"--freeze-backbone", "--output", folder / "head"});
  ASSERT_EQ(head.code, 0) << head.err;
  EXPECT_NE(head.err.find("2 of 84 parameters trained"), std::string::npos) << head.err;
  EXPECT_EQ(layers_that_differ(trained_network(), folder / "head/model.onnx"), (std::set<std::string>{"predictions"}));
  EXPECT_EQ(read_text(folder / "head/labels.txt"), "a\nb\nc\n3\n4\n");
  const Finished predicted = run_tandem({"predict", folder / "head/model.onnx", folder / "set/a", "--out", folder / "rows.csv"});
  EXPECT_EQ(predicted.code, 0) << predicted.err;
  const Finished part = run_tandem(words + Words{"--freeze", "block1*", "--output", folder / "part"});
  ASSERT_EQ(part.code, 0) << part.err;
  const auto changed = layers_that_differ(trained_network(), folder / "part/model.onnx");
  EXPECT_GT(changed.size(), 20u);
  for (const std::string& layer : changed) EXPECT_FALSE(layer.starts_with("block1_")) << layer;
}

}  // namespace
}  // namespace tandem::test
