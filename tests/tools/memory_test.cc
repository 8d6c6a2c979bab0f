// The predicted peak against the system's own account of the process, on a network whose weights are most of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/write_png.h"
#include "tests/support/files.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

constexpr bool kSanitized = std::string_view(TANDEM_SANITIZE) != "";

std::string random_weights(const std::string& name, const Ints& dims, float scale) {
  std::size_t n = 1;
  for (const std::int64_t d : dims) n *= static_cast<std::size_t>(d);
  std::string raw(n * 4, '\0');
  std::uint64_t state = n;
  for (std::size_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const float value = scale * (static_cast<float>(state >> 40) / 8388608.0f - 1);
    std::memcpy(raw.data() + i * 4, &value, 4);
  }
  return raw_tensor(name, 1, dims, raw);
}

// 3x128x128 -> 64 channels -> 1024 at 8x8, two 3x3 convolutions of 38 MB each with their normalisations, mean, softmax.
std::string heavy_network() {
  OnnxGraph g;
  const auto conv = [&](const std::string& name, const std::string& from, const Ints& w, const Ints& strides, const Ints& pads) {
    g.initializers.push_back(random_weights(name + "_w", w, 0.02f));
    g.nodes.push_back({.op = "Conv",
                       .inputs = {from, name + "_w"},
                       .outputs = {name},
                       .attributes = {ints_attribute("strides", strides), ints_attribute("pads", pads)}});
    for (const char* part : {"_scale", "_shift", "_mean", "_variance"})
      g.initializers.push_back(float_tensor(name + part, {w[0]}, std::vector<float>(static_cast<std::size_t>(w[0]), 0.75f)));
    g.nodes.push_back({.op = "BatchNormalization",
                       .inputs = {name, name + "_scale", name + "_shift", name + "_mean", name + "_variance"},
                       .outputs = {name + "_n"}});
    g.nodes.push_back({.op = "Relu", .inputs = {name + "_n"}, .outputs = {name + "_r"}});
    return name + "_r";
  };
  std::string x = conv("stem", "x", {64, 3, 3, 3}, {1, 1}, {1, 1, 1, 1});
  x = conv("wide", x, {1024, 64, 1, 1}, {16, 16}, {0, 0, 0, 0});
  x = conv("first", x, {1024, 1024, 3, 3}, {1, 1}, {1, 1, 1, 1});
  x = conv("second", x, {1024, 1024, 3, 3}, {1, 1}, {1, 1, 1, 1});
  g.nodes.push_back({.op = "GlobalAveragePool", .inputs = {x}, .outputs = {"mean"}});
  g.nodes.push_back({.op = "Flatten", .inputs = {"mean"}, .outputs = {"flat"}});
  g.nodes.push_back({.op = "Softmax", .inputs = {"flat"}, .outputs = {"y"}});
  g.inputs = {value_bytes("x", 1, {-1, 3, 128, 128})};
  g.outputs = {value_bytes("y", 1, {-1, 1024})};
  return model_bytes({.graph = g});
}

TEST(Memory, ThePeakIsAsPredicted) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory is counted by the system too";
  const TemporaryFolder folder;
  const std::string model = folder.write("heavy.onnx", heavy_network());
  for (const char* precision : {"f32", "bf16"}) {
    for (const char* batch : {"1", "8"}) {
      SCOPED_TRACE(std::string(precision) + ", batch " + batch);
      const Finished done = run_tandem({"bench", model, "--batch", batch, "--precision", precision, "--threads", "2", "--iters", "1", "--json", "-"});
      ASSERT_EQ(done.code, 0) << done.err;
      const auto figures = nlohmann::json::parse(done.out);
      const double peak = figures.at("peak_rss_mb"), predicted = figures.at("predicted_peak_mb");
      EXPECT_GT(peak, 76);
      EXPECT_LT(std::abs(peak - predicted), 16.8) << "peak " << peak << " MB, predicted " << predicted << " MB";
    }
  }
}

// Training takes the most in a step; validation after an epoch comes in the place of a step's activations, and may take more where batches are small.
TEST(Memory, ThePeakOfTrainingWithValidationIsAsPredicted) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory is counted by the system too";
  const TemporaryFolder folder;
  for (int i = 0; i < 60; ++i) {
    io::Pixels p{64, 64, 3, std::vector<std::uint8_t>(64 * 64 * 3)};
    for (std::size_t b = 0; b < p.data.size(); ++b) p.data[b] = static_cast<std::uint8_t>(b * static_cast<std::size_t>(i + 3) / 5);
    const std::string of_class = folder / ("set/" + std::to_string(i % 2));
    std::filesystem::create_directories(of_class);
    io::write_png(of_class + "/" + std::to_string(i) + ".png", p);
  }
  for (const char* batch : {"32", "1"}) {
    for (const char* split : {"0.5", "0"}) {
      SCOPED_TRACE(std::string("batch ") + batch + ", --val-split " + split);
      const Finished done =
          run_tandem({"train", trained_network(), folder / "set", "--preprocess", "tf", "--batch", batch, "--val-split", split, "--steps-per-epoch",
                      "2", "--epochs", "3", "--threads", "2", "--output", folder / (std::string("out") + batch + split)});
      ASSERT_EQ(done.code, 0) << done.err;
      const std::string word = "predicted peak ";
      const std::size_t at = done.err.find(word);
      ASSERT_NE(at, std::string::npos) << done.err;
      const double predicted = std::stod(done.err.substr(at + word.size())), peak = static_cast<double>(done.peak_kilobytes) / 1024;
      ASSERT_NE(done.err.find(" MiB", at), std::string::npos);
      EXPECT_LT(std::abs(peak - predicted), std::max(16.0, 0.1 * peak)) << "peak " << peak << " MiB, predicted " << predicted << " MiB";
    }
  }
}

}  // namespace
}  // namespace tandem::test
