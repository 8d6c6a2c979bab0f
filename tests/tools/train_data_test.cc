// `tandem train` and its data: every sample once on any number of devices, files that are damaged, a loader that is slow, memory that ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "io/write_png.h"
#include "tests/support/files.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

const bool kSanitized = !std::string(TANDEM_SANITIZE).empty();

// `count` images of noise, in turn of the classes a, b, c.
void make_images(const TemporaryFolder& folder, const std::string& set, int count, int side = 16) {
  std::uint32_t noise = 1;
  for (int i = 0; i < count; ++i) {
    io::Pixels p{side, side, 3, std::vector<std::uint8_t>(static_cast<std::size_t>(side * side * 3))};
    for (auto& v : p.data) v = static_cast<std::uint8_t>((noise = noise * 1664525 + 1013904223) >> 24);
    const std::string of_class = folder / (set + "/" + std::string(1, "abc"[i % 3]));
    fs::create_directories(of_class);
    io::write_png(of_class + "/" + std::to_string(i) + ".png", p);
  }
}

Finished train(const TemporaryFolder& folder, const std::string& set, const std::string& output, const Words& more) {
  Words words = {
      "train",        TANDEM_SOURCE_DIR "/tests/data/training/net_a_softmax.onnx", folder / set, "--preprocess", "tf", "--lr", "0.01", "--output",
      folder / output};
  words.insert(words.end(), more.begin(), more.end());
  return run_tandem(words);
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

// The sum of the cells of the report's confusion matrix.
int samples_in_matrix(const std::string& page) {
  const std::size_t begin = page.find("<table class=\"matrix\">"), end = page.find("</table>", begin);
  int sum = 0;
  for (std::size_t at = page.find("<td", begin); at < end; at = page.find("<td", at + 1)) sum += std::atoi(page.c_str() + page.find('>', at) + 1);
  return sum;
}

// Fewer samples than devices, batches that do not divide, more devices than a batch has samples: as many steps and the same figures as on one.
TEST(TrainData, EverySampleCountsOnceOnAnyNumberOfDevices) {
  const TemporaryFolder folder;
  make_images(folder, "train", 13);
  make_images(folder, "few", 5);
  make_images(folder, "val", 10);
  struct Case {
    const char *set, *batch;
    std::size_t steps;
  };
  for (const Case& c : {Case{"train", "2", 7}, {"train", "32", 1}, {"few", "4", 2}}) {
    std::string summary, weights;
    for (const char* devices : {"cpu", "cpu:3", "cpu:8"}) {
      const std::string run = std::string(c.set) + c.batch + devices + "/";
      const Finished r = train(folder, c.set, run,
                               {"--batch-size", c.batch, "--val-data", folder / "val", "--devices", devices, "--log", folder / (run + "log.jsonl")});
      ASSERT_EQ(r.code, 0) << run << r.err;
      EXPECT_EQ(count(read_text(folder / (run + "log.jsonl")), "\n"), c.steps) << run;
      EXPECT_EQ(samples_in_matrix(read_text(folder / (run + "report.html"))), 10) << run;
      if (summary.empty()) {
        summary = read_text(folder / (run + "summary.csv"));
        weights = read_text(folder / (run + "weights.h5"));
      }
      EXPECT_EQ(read_text(folder / (run + "summary.csv")), summary) << run;
      EXPECT_TRUE(read_text(folder / (run + "weights.h5")) == weights) << run;
    }
  }
}

TEST(TrainData, DamagedFilesStopTheRunOrAreNamedAndCounted) {
  const TemporaryFolder folder;
  make_images(folder, "set", 13);
  make_images(folder, "val", 6);
  for (const char* name : {"set/b/4.png", "val/a/3.png"}) folder.write(name, read_text(folder / name).substr(0, 300));
  const Words run = {"--batch-size", "4", "--epochs", "2", "--val-data", folder / "val"};
  fs::create_directories(folder / "set/d");
  const Finished stopped = train(folder, "set", "stopped", run);
  EXPECT_EQ(stopped.code, 4) << stopped.err;
  EXPECT_NE(stopped.err.find("no image in \"d\""), std::string::npos) << stopped.err;
  EXPECT_NE(stopped.err.find("set/b/4.png"), std::string::npos) << stopped.err;
  std::string weights;
  for (const char* devices : {"cpu", "cpu:3"}) {
    Words skipping = run;
    skipping.insert(skipping.end(), {"--bad-files", "skip", "--devices", devices});
    const Finished r = train(folder, "set", devices, skipping);
    ASSERT_EQ(r.code, 0) << r.err;
    for (const char* name : {"set/b/4.png", "val/a/3.png"}) EXPECT_EQ(count(r.err, name), 1u) << r.err;
    EXPECT_NE(r.err.find("2 files left out"), std::string::npos) << r.err;
    if (weights.empty()) weights = read_text(folder / (std::string(devices) + "/weights.h5"));
    EXPECT_TRUE(read_text(folder / (std::string(devices) + "/weights.h5")) == weights);
  }
}

TEST(TrainData, HiddenFoldersAreNoClassesWhichIsSaidOnce) {
  const TemporaryFolder folder;
  make_images(folder, "set", 6);
  for (const char* hidden : {"set/.cache", "set/a/.ipynb_checkpoints"}) fs::copy(folder / "set/a", folder / hidden);
  const Finished r = train(folder, "set", "run", {"--val-split", "0.5"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(count(r.err, "hidden folders are no classes, the images in \".cache\", \"a/.ipynb_checkpoints\" are left out"), 1u) << r.err;
  EXPECT_NE(r.err.find("3 samples, 3 for validation"), std::string::npos) << r.err;
  EXPECT_EQ(read_text(folder / "run/labels.txt"), "a\nb\nc\n");
}

// Large pictures for a tiny network: nearly all of the time goes into decoding, and the epoch's line, the last line and the report say so.
TEST(TrainData, ASlowLoaderIsSeen) {
  const TemporaryFolder folder;
  make_images(folder, "set", 16, kSanitized ? 300 : 700);
  const Finished r = train(folder, "set", "run", {"--batch-size", "4", "--val-split", "0.4", "--image-size", "16"});
  ASSERT_EQ(r.code, 0) << r.err;
  const std::string page = read_text(folder / "run/report.html");
  for (const auto& [text, before] : {std::pair(r.err, "learning_rate: 0.01 (waited for data "),
                                     {r.err, " s, waited for data "},
                                     {page, "<dt>waited for data</dt><dd>"},
                                     {page, "</i>waiting for data "}}) {
    const std::size_t at = text.find(before);
    ASSERT_NE(at, std::string::npos) << before << "\n" << r.err;
    const double percent = std::atof(text.c_str() + at + std::string(before).size());
    EXPECT_GE(percent, 30) << before << "\n" << r.err;
    EXPECT_LE(percent, 100) << before;
  }
}

// The system refuses memory at some point before or in the steps: that is the error, told once, and the end.
TEST(TrainData, MemoryThatEndsIsTheOneErrorOfTheRun) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes all addresses for itself";
  const TemporaryFolder folder;
  make_images(folder, "set", 64, 64);
  int failed_in_steps = 0;
  for (int mebibytes = 60; mebibytes <= 300; mebibytes += 40) {
    const std::string run = folder / std::to_string(mebibytes);
    const Finished r =
        run_program({"/bin/sh", "-c",
                     "ulimit -v " + std::to_string(mebibytes * 1024) + "; exec " TANDEM_BINARY_DIR "/bin/tandem train " + trained_network() + " " +
                         (folder / "set") + " --preprocess tf --batch-size 64 --threads 2 --devices cpu:2 --output " + run});
    ASSERT_TRUE(r.code == 0 || r.code == 5) << mebibytes << " MiB, exit code " << r.code << ", signal " << r.signal << ": " << r.err;
    EXPECT_EQ(count(r.err, "tandem: error: "), r.code == 5 ? 1u : 0u) << r.err;
    failed_in_steps += r.code == 5 && r.err.find("Epoch 1/1") != std::string::npos;
    if (r.code == 0) break;
  }
  EXPECT_GT(failed_in_steps, 0);
}

}  // namespace
}  // namespace tandem::test
