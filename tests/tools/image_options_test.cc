// What predict, evaluate and convert do with options and networks that do not go together: act, say so, or refuse; never ignore.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

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

TEST_F(ImageOptions, AnswersThatAreNoNumbersAreCounted) {
  OnnxModel m;
  m.graph.inputs = {value_bytes("x", 1, {-1, 3, 5, 5})};
  m.graph.nodes = {
      {"Sub", {"x", "grey"}, {"above"}}, {"Sqrt", {"above"}, {"root"}}, {"GlobalAveragePool", {"root"}, {"mean"}}, {"Flatten", {"mean"}, {"y"}}};
  m.graph.initializers = {float_tensor("grey", {1}, {100})};
  m.graph.outputs = {value_bytes("y", 1, {-1, 3})};
  const Finished r = predict(folder_.write("m.onnx", model_bytes(m)));
  EXPECT_EQ(r.code, 0);
  EXPECT_NE(r.err.find("2 of 4 images"), std::string::npos) << r.err;
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

TEST_F(ImageOptions, OtherExternalWeightsAreAnotherModel) {
  OnnxModel m;
  m.graph.inputs = {value_bytes("x", 1, {-1, 3, 5, 5})};
  m.graph.nodes = {{"GlobalAveragePool", {"x"}, {"mean"}, {}, "pool"}, {"Flatten", {"mean"}, {"flat"}, {}, "flatten"}, {"Add", {"flat", "w"}, {"y"}}};
  m.graph.outputs = {value_bytes("y", 1, {-1, 3})};
  m.graph.initializers = {external_tensor("w", 1, {3}, {{"location", "w.bin"}})};
  const std::string model = folder_.write("external.onnx", model_bytes(m));
  folder_.write("w.bin", std::string(12, '\0'));
  ASSERT_EQ(predict(model).code, 0);
  EXPECT_EQ(predict(model, {"--continue"}).code, 0);
  folder_.write("w.bin", std::string(11, '\0') + "\x3f");
  const Finished r = predict(model, {"--continue"});
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("then \"data\" \""), std::string::npos) << r.err;
  EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 2) << "one line, and that of the preprocessing: " << r.err;
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

TEST_F(ImageOptions, InspectShowsWhatOpenSizesLeave) {
  OnnxModel m = one_node("Conv", 17, {{-1, 3, -1, -1}}, {ints_attribute("kernel_shape", {3, 3})});
  m.graph.nodes[0].inputs.push_back("w");
  m.graph.initializers = {float_tensor("w", {2, 3, 3, 3}, std::vector<float>(54, 1))};
  const std::string model = folder_.write("open.onnx", model_bytes(m));
  const auto open = nlohmann::json::parse(run_tandem({"inspect", model, "--json"}).out);
  EXPECT_EQ(open.at("parameters"), 54);
  EXPECT_EQ(open.at("operators").at("Conv"), 1);
  EXPECT_TRUE(open.at("input_shapes").is_null());
  EXPECT_TRUE(open.at("nodes").at(0).at("output").is_null());
  const Finished text = run_tandem({"inspect", model});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("--size or --shape"), std::string::npos) << text.out;
  const auto sized = nlohmann::json::parse(run_tandem({"inspect", model, "--json", "--size", "8"}).out);
  EXPECT_EQ(sized.at("nodes").at(0).at("output"), nlohmann::json({1, 2, 6, 6}));
  const std::string recorded = folder_ / "recorded.onnx";
  ASSERT_EQ(run_tandem({"convert", model, "-o", recorded, "--preprocess", "tf", "--image-size", "10x12"}).code, 0);
  EXPECT_EQ(nlohmann::json::parse(run_tandem({"inspect", recorded, "--json"}).out).at("nodes").at(0).at("output"), nlohmann::json({1, 2, 8, 10}));
}

TEST_F(ImageOptions, WithoutLabelsNoneAreSpokenOf) {
  const Finished r = run_tandem({"evaluate", network(), folder_ / "set", "--preprocess", "none"});
  EXPECT_EQ(r.code, 4);
  EXPECT_NE(r.err.find("the data has 2 classes, the network 3 outputs, and there are no labels"), std::string::npos) << r.err;
}

}  // namespace
}  // namespace tandem::test
