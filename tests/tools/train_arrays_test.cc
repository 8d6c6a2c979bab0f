// `tandem train` and `evaluate` on arrays: layouts, what is said of numbers that no record goes over, labels that are missing or no classes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/npy.h"
#include "tests/support/files.h"
#include "tests/support/node_test.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

using Words = std::vector<std::string>;

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Images of 16 x 16 with three channels, these first; five classes.
const char* const kNetwork = TANDEM_SOURCE_DIR "/tests/data/training/net_a_softmax.onnx";

Words train_words(const std::string& data, const Words& more) { return Words{"train", kNetwork, data, "--optimizer", "sgd", "--batch", "4"} + more; }

void expect_says(const Finished& r, int code, const Words& all) {
  EXPECT_EQ(r.code, code) << r.err;
  for (const std::string& said : all) EXPECT_NE(r.err.find(said), std::string::npos) << said << " is not in: " << r.err;
}

void write_labels(const std::string& file, const std::vector<std::int32_t>& labels) {
  io::write_npy(file, Tensor::of<std::int32_t>({std::ssize(labels)}, std::span<const std::int32_t>(labels)));
}

const std::vector<std::int32_t> kFive = {0, 1, 2, 3, 4, 0, 1, 2};

// The same samples with the channels last.
Tensor turned(const Tensor& x) {
  const Shape& s = x.shape();
  Tensor out(DType::kF32, {s[0], s[2], s[3], s[1]});
  const auto from = x.as<float>();
  const auto to = out.as_mutable<float>();
  const std::int64_t pixels = s[2] * s[3];
  for (std::int64_t n = 0; n < s[0]; ++n) {
    for (std::int64_t c = 0; c < s[1]; ++c) {
      for (std::int64_t i = 0; i < pixels; ++i)
        to[static_cast<std::size_t>((n * pixels + i) * s[1] + c)] = from[static_cast<std::size_t>((n * s[1] + c) * pixels + i)];
    }
  }
  return out;
}

TEST(TrainArrays, ChannelsLastTrainTheSameNetworkAsChannelsFirst) {
  const TemporaryFolder folder;
  const Tensor first = random_f32({8, 3, 16, 16}, 5);
  std::string summary;
  for (const char* name : {"first", "last"}) {
    const bool last = std::string(name) == "last";
    const std::string data = folder / (std::string(name) + ".npy");
    io::write_npy(data, last ? turned(first) : first);
    write_labels(folder / (std::string(name) + "_y.npy"), kFive);
    const Finished r = run_tandem(train_words(data, {"--preprocess", "tf", "--output", folder / name}));
    expect_says(r, 0, {".npy\": the samples are numbers, taken as preprocessed already"});
    EXPECT_EQ(r.err.find("turned from channels last to channels first") != std::string::npos, last) << r.err;
    const Finished e = run_tandem({"evaluate", folder / (std::string(name) + "/model.onnx"), data, "--json"});
    expect_says(e, 0, {"taken as preprocessed already"});
    if (summary.empty()) summary = read_text(folder / (std::string(name) + "/summary.csv")) + e.out;
    EXPECT_EQ(read_text(folder / (std::string(name) + "/summary.csv")) + e.out, summary);
  }
  EXPECT_TRUE(read_text(folder / "first/weights.h5") == read_text(folder / "last/weights.h5"));
}

TEST(TrainArrays, OtherShapesAreRefused) {
  const TemporaryFolder folder;
  const std::string data = folder / "x.npy";
  write_labels(folder / "y.npy", kFive);
  for (const auto& [shape, said] : {std::pair(Shape{8, 768}, "[768]"), {Shape{8, 16, 3, 16}, "[16, 3, 16]"}, {Shape{8, 8, 32, 3}, "[8, 32, 3]"}}) {
    io::write_npy(data, random_f32(shape, 5));
    const Words all = {"x.npy", said, "the network takes [3, 16, 16]"};
    expect_says(run_tandem(train_words(data, {"--preprocess", "none", "--output", folder / "o"})), 4, all);
    expect_says(run_tandem({"evaluate", kNetwork, data, "--preprocess", "none"}), 4, all);
  }
}

TEST(TrainArrays, PixelsThatNobodyNormalisedAreWarnedOf) {
  const TemporaryFolder folder;
  Tensor x = random_f32({8, 3, 16, 16}, 5);
  for (float& v : x.as_mutable<float>()) v = (v + 1) * 127;
  io::write_npy(folder / "x.npy", x);
  write_labels(folder / "y.npy", kFive);
  const char* const warning = "look like pixels that were not normalised";
  for (const char* family : {"tf", "torch", "caffe", "none"}) {
    const Finished r = run_tandem({"evaluate", kNetwork, folder / "x.npy", "--preprocess", family});
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.err.find(warning) != std::string::npos, std::string(family) != "none") << family << r.err;
    EXPECT_EQ(r.err.find("preprocessed already") != std::string::npos, std::string(family) != "none") << family << r.err;
  }
  io::write_npy(folder / "x.npy", random_f32({8, 3, 16, 16}, 5));
  const Finished r = run_tandem({"evaluate", kNetwork, folder / "x.npy", "--preprocess", "tf"});
  EXPECT_EQ(r.err.find(warning), std::string::npos) << r.err;
}

}  // namespace
}  // namespace tandem::test
