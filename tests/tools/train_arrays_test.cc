// `tandem train` and `evaluate` on arrays: layouts, what is said of numbers that no record goes over, labels that are missing or no classes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/hdf5.h"
#include "io/npy.h"
#include "runtime/base/safe_file.h"
#include "tests/support/files.h"
#include "tests/support/node_test.h"
#include "tests/support/subprocess.h"
#include "tests/support/train_program.h"

namespace tandem::test {
namespace {

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

TEST(TrainArrays, MissingLabelsAreNamed) {
  const TemporaryFolder folder;
  const std::string digits = TANDEM_SOURCE_DIR "/tests/data/sets/";
  io::write_npy(folder / "x.npy", random_f32({8, 3, 16, 16}, 5));
  const std::string idx = folder.write("alone-images-idx3-ubyte.gz", read_text(digits + "t10k-images-idx3-ubyte.gz"));
  const io::H5Image image;
  image.root().write("x", random_f32({8, 3, 16, 16}, 5));
  save_file(folder / "x.h5", image.bytes());
  for (const auto& [data, where] : {std::pair(folder / "x.npy", "y.npy beside it"), {idx, "-labels-idx1-ubyte"}, {folder / "x.h5", "y beside x"}}) {
    const Words all = {data, "has no labels", where};
    for (const char* loss : {"auto", "categorical_crossentropy", "binary_crossentropy"}) {
      expect_says(run_tandem(train_words(data, {"--preprocess", "none", "--loss", loss, "--output", folder / "o"})), 4, all);
      expect_says(run_tandem({"evaluate", kNetwork, data, "--preprocess", "none", "--loss", loss}), 4, all);
    }
    expect_says(run_tandem(train_words(data, {"--preprocess", "none", "--loss", "mse", "--output", folder / "o"})), 4, {data});
  }
  // What is validated on as well.
  io::write_npy(folder / "set.npy", random_f32({8, 3, 16, 16}, 5));
  write_labels(folder / "set_y.npy", kFive);
  expect_says(run_tandem(train_words(folder / "set.npy", {"--preprocess", "none", "--val-data", folder / "x.npy", "--output", folder / "o"})), 4,
              {"x.npy", "has no labels"});
}

TEST(TrainArrays, AStrayNegativeLabelIsNoRegression) {
  const TemporaryFolder folder;
  io::write_npy(folder / "x.npy", random_f32({8, 3, 16, 16}, 5));
  const Words run = {"--preprocess", "none", "--output"};
  write_labels(folder / "y.npy", {0, 1, 2, -1, 4, 0, 1, 2});
  expect_says(run_tandem(train_words(folder / "x.npy", run + Words{folder / "o"})), 4, {"x.npy[3]", "label -1, which is no class", "--loss mse"});
  expect_says(run_tandem(train_words(folder / "x.npy", run + Words{folder / "mse", "--loss", "mse"})), 0, {});
  write_labels(folder / "y.npy", {-3, -1, -2, -1, -4, -1, -1, -2});  // numbers, clearly
  expect_says(run_tandem(train_words(folder / "x.npy", run + Words{folder / "below"})), 0, {"--loss auto: mse"});
  const std::vector<float> floats = {0, 1, 2, -1, 4, 0, 1, 2};
  io::write_npy(folder / "y.npy", Tensor::of<float>({8}, std::span<const float>(floats)));
  expect_says(run_tandem(train_words(folder / "x.npy", run + Words{folder / "floats"})), 0, {"--loss auto: mse"});
}

TEST(TrainArrays, AStrayLargeLabelMakesNoHeadOfMillions) {
  const TemporaryFolder folder;
  io::write_npy(folder / "x.npy", random_f32({8, 3, 16, 16}, 5));
  const Words run = {"--preprocess", "none", "--output"};
  write_labels(folder / "y.npy", {0, 1, 2, 3, 4, 4000000, 1, 2});
  expect_says(run_tandem(train_words(folder / "x.npy", run + Words{folder / "o"})), 4,
              {"x.npy[5]", "label 4000000, which asks for 4000001 classes", "6 different labels", "--classes 4000001"});
  // Six labels with gaps up to 1060 classes are believed.
  write_labels(folder / "y.npy", {0, 1, 2, 3, 4, 1060, 1, 2});
  expect_says(run_tandem(train_words(folder / "x.npy", run + Words{folder / "o"})), 4, {"1061 classes"});
  expect_says(run_tandem(train_words(folder / "x.npy", run + Words{folder / "o", "--classes", "1061"})), 0, {"x 1061"});
  write_labels(folder / "y.npy", {0, 1, 2, 3, 4, 1059, 1, 2});
  expect_says(run_tandem(train_words(folder / "x.npy", run + Words{folder / "most"})), 0, {"x 1060"});
}

}  // namespace
}  // namespace tandem::test
