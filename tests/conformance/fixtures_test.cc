// Exported networks against the answers of the frameworks they came from, each within the tolerance of its manifest, with and without passes, on
// one and three devices. The source tree holds a part; the rest is run where it is: in the folder that TANDEM_FIXTURES names, else in
// ../shared/fixtures/onnx beside the source tree.
#include "tests/conformance/fixtures.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <set>

#include "tools/backend_case.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using cli::CaseOptions;
using cli::CaseOutcome;
using cli::Verdict;

// What the manifest's words ask the refusal of each file to name.
const std::map<std::string, std::vector<std::string>>& refusals() {
  static const std::map<std::string, std::vector<std::string>> words = {
      {"reject/conv_dy_xception_op17", {"ReduceMean", "axes", "second input", "opset 17", "opset 18"}},
      {"reject/dy_xception_bf16_op22", {"(Conv)", "node_Conv_", "bfloat16", "float32"}},
      {"reject/k3_convnext", {"operator StatefulPartitionedCall", "operator Erfc"}},
      {"reject/k3_erfc", {"operator Erfc"}},
      {"reject/k3_random_flip", {"operator StatelessRandomUniformV2"}},
      {"reject/ort_all_nchwc",
       {"operator Conv of domain \"com.microsoft.nchwc\"", "operator ReorderInput of domain \"com.microsoft.nchwc\"",
        "operator ReorderOutput of domain \"com.microsoft.nchwc\"", "operator FusedConv of domain \"com.microsoft\""}},
      {"reject/ort_extended_biasgelu", {"operator BiasGelu of domain \"com.microsoft\"", "LayerNormalization at opset 13"}},
      {"reject/ort_extended_fusedconv", {"operator FusedConv of domain \"com.microsoft\""}},
      // The manifest also speaks of Gelu and FusedMatMul: the file has BiasGelu alone.
      {"reject/ort_extended_layernorm_gelu", {"operator BiasGelu of domain \"com.microsoft\""}},
      {"reject/ort_qoperator",
       {"operator QGemm of domain \"com.microsoft\"", "operator QLinearAdd of domain \"com.microsoft\"",
        "operator QLinearGlobalAveragePool of domain \"com.microsoft\""}},
      {"reject/tfk_dropout_training", {"operator RandomUniformLike"}},
  };
  return words;
}

void check_refusal(const Fixture& f) {
  try {
    (void)Predictor(Model::from_file(f.folder / "model.onnx"));
    ADD_FAILURE() << "was not refused: " << f.reject;
  } catch (const Error& e) {
    const auto words = refusals().find(f.name);
    ASSERT_NE(words, refusals().end()) << "nothing says what the refusal must name: " << f.reject;
    for (const std::string& word : words->second) EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << word << ": " << e.what();
  }
}

// A file exported in training mode is run as written here; training_export_test.cc has what it gives in inference.
CaseOptions comparison(const Fixture& f) { return {f.rtol, f.atol, f.training ? "train_output" : "output"}; }

void check_answers(const Fixture& f) {
  const bool random = f.training && !fs::exists(f.folder / "train_output_0.pb");  // Dropout in training mode: nothing to compare
  for (const RunOptions& run : all_settings()) {
    const CaseOutcome outcome = cli::run_case(f.folder, comparison(f), run);
    EXPECT_EQ(outcome.verdict, random ? Verdict::kRefused : Verdict::kPass) << outcome.reason << "; " << say(run);
    if (random) {
      EXPECT_NE(outcome.reason.find("Dropout in training mode gives random values"), std::string::npos) << outcome.reason;
    }
  }
}

// Gives how many fixtures were run.
int check_all(const std::vector<Fixture>& fixtures, const std::set<std::string>& without) {
  int count = 0;
  for (const Fixture& f : fixtures) {
    if (without.count(f.name)) continue;
    SCOPED_TRACE(f.name);
    f.reject.empty() ? check_answers(f) : check_refusal(f);
    ++count;
  }
  return count;
}

TEST(Fixtures, ThoseOfTheSourceTree) { EXPECT_EQ(check_all(read_fixtures(fixtures_folder()), {}), 53); }

TEST(Fixtures, TheRest) {
  const char* named = std::getenv("TANDEM_FIXTURES");
  const fs::path folder = named ? fs::path(named) : fs::path(TANDEM_SOURCE_DIR) / ".." / "shared" / "fixtures" / "onnx";
  if (!named && !fs::exists(folder / "manifest.json")) {
    std::cout << "the rest of the fixtures is not here (no manifest.json in \"" << folder.lexically_normal().string()
              << "\"; TANDEM_FIXTURES names another folder)\n";
    return;
  }
  std::set<std::string> done;
  for (const Fixture& f : read_fixtures(fixtures_folder())) done.insert(f.name);
  const int count = check_all(read_fixtures(folder), done);
  std::cout << "the rest of the fixtures: " << count << " in \"" << folder.lexically_normal().string() << "\"\n";
}

}  // namespace
}  // namespace tandem::test
