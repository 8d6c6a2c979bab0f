// What predict, evaluate and convert do with options and networks that do not go together: act, say so, or refuse; never ignore.
#include <gtest/gtest.h>

#include <filesystem>

#include "io/write_png.h"
#include "tests/support/files.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

class ImageOptions : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a/1", "a/2", "b/3", "b/4"}) {
      fs::create_directories(fs::path(folder_ / ("set/" + std::string(name))).parent_path());
      io::Pixels p{5, 5, 3, std::vector<std::uint8_t>(75, static_cast<std::uint8_t>(40 * (name[2] - '0')))};
      p.data[0] = 255;
      io::write_png(folder_ / ("set/" + std::string(name) + ".png"), p);
    }
  }
  // Three scores: the means of the channels, less those of the batch where it `mixes` its images; the maxima come out too where asked.
  std::string network(bool mixes = false, bool second = false, std::int64_t batch = -1) const {
    OnnxModel m;
    m.graph.inputs = {value_bytes("x", 1, {batch, 3, 5, 5})};
    m.graph.nodes = {{"GlobalAveragePool", {"x"}, {"mean"}, {}, "pool"},
                     {"Flatten", {"mean"}, {"flat"}, {}, "flatten"},
                     {"ReduceMean", {"flat"}, {"all"}, {ints_attribute("axes", {0})}, "batch_mean"},
                     {"Sub", {"flat", mixes ? "all" : "none"}, {"y"}, {}, "score"}};
    if (!mixes) m.graph.nodes.erase(m.graph.nodes.begin() + 2);
    m.graph.initializers = {float_tensor("none", {3}, {0, 0, 0})};
    m.graph.outputs = {value_bytes("y", 1, {batch, 3})};
    if (second) {
      m.graph.nodes.push_back({"GlobalMaxPool", {"x"}, {"peaks"}, {}, "peak"});
      m.graph.outputs.push_back(value_bytes("peaks", 1, {batch, 3, 1, 1}));
    }
    return folder_.write("m.onnx", model_bytes(m));
  }
  Finished predict(const std::string& model, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"predict", model, folder_ / "set", "--recursive", "--out", folder_ / "rows.csv", "--preprocess", "none"};
    words.insert(words.end(), more.begin(), more.end());
    return run_tandem(words);
  }
  const TemporaryFolder folder_;
};

TEST_F(ImageOptions, ClassesAndLayersContradictEachOther) {
  const std::string model = network(), labels = folder_.write("l.txt", "a\nb\nc\n");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"--layer", "pool", "--topk", "2"},
                                                                                     {"--layer", "pool", "--output-type", "logit"},
                                                                                     {"--layer", "pool", "--output-type", "prob"},
                                                                                     {"--layer", "pool", "--labels", labels},
                                                                                     {"--output-type", "features", "--topk", "1"}}) {
    const Finished r = predict(model, words);
    EXPECT_EQ(r.code, 2) << words[0] << " " << words[2] << r.err;
    EXPECT_NE(r.err.find(words[2]), std::string::npos) << r.err;
    EXPECT_FALSE(fs::exists(folder_ / "rows.csv"));
  }
  EXPECT_EQ(predict(model, {"--layer", "pool", "--output-type", "features"}).code, 0);
  EXPECT_TRUE(read_text(folder_ / "rows.csv").starts_with("path,feature1,feature2,feature3\n"));
}

TEST_F(ImageOptions, ASecondOutputIsNamed) {
  const Finished r = predict(network(false, true));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("the network has 2 outputs: \"y\" is taken, \"peaks\" left out"), std::string::npos) << r.err;
  EXPECT_EQ(predict(network(false, true), {"--layer", "peak"}).err.find("left out"), std::string::npos);
  EXPECT_EQ(predict(network()).err.find("outputs:"), std::string::npos);
}

TEST_F(ImageOptions, ANetworkThatMixesTheBatchIsWarnedOf) {
  const std::string said = "images of one batch may influence each other";
  const Finished r = predict(network(true), {"--batch", "3"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("tandem: warning: " + said), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("--batch-size (here 3)"), std::string::npos) << r.err;
  EXPECT_EQ(r.err.find(said), r.err.rfind(said)) << "once";
  EXPECT_EQ(predict(network(true), {"--batch", "3", "--continue"}).code, 2);
  EXPECT_EQ(predict(network(true), {"--batch", "1"}).err.find(said), std::string::npos);
  EXPECT_EQ(predict(network(), {"--batch", "3"}).err.find(said), std::string::npos);
  const Finished fixed = predict(network(true, false, 2));
  EXPECT_NE(fixed.err.find("may change with the order of the images"), std::string::npos) << fixed.err;
}

TEST_F(ImageOptions, PlacementIsSaidByEveryCommandThatRuns) {
  const std::string model = network();
  const Finished predicted = predict(model, {"--log-placement", "--merge", "device", "--soft-placement"});
  EXPECT_EQ(predicted.code, 0) << predicted.err;
  for (const char* text : {"placement: the batch is cut", "placement: node \"pool\"", "--merge device:", "--soft-placement:"})
    EXPECT_NE(predicted.err.find(text), std::string::npos) << text << "\n" << predicted.err;
  const Finished evaluated =
      run_tandem({"evaluate", model, folder_ / "set", "--preprocess", "none", "--labels", folder_.write("l.txt", "a\nb\nc\n"), "--log-placement"});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_NE(evaluated.err.find("placement: node \"pool\""), std::string::npos) << evaluated.err;
}

TEST_F(ImageOptions, ConvertCountsTheLabels) {
  const std::string model = network();
  const auto convert = [&](const std::string& labels) {
    return run_tandem({"convert", model, "-o", folder_ / "out.onnx", "--labels", folder_.write("l.txt", labels)});
  };
  const Finished wrong = convert("a\nb\n");
  EXPECT_EQ(wrong.code, 4) << wrong.err;
  EXPECT_NE(wrong.err.find("2 labels"), std::string::npos) << wrong.err;
  EXPECT_NE(wrong.err.find("3 outputs"), std::string::npos) << wrong.err;
  EXPECT_FALSE(fs::exists(folder_ / "out.onnx"));
  EXPECT_EQ(convert("a\nb\nc\n").code, 0);
}

TEST_F(ImageOptions, WithoutLabelsNoneAreSpokenOf) {
  const Finished r = run_tandem({"evaluate", network(), folder_ / "set", "--preprocess", "none"});
  EXPECT_EQ(r.code, 4);
  EXPECT_NE(r.err.find("the data has 2 classes, the network 3 outputs, and there are no labels"), std::string::npos) << r.err;
}

}  // namespace
}  // namespace tandem::test
