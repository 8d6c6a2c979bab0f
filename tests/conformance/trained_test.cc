// A trained network of PaddleOCR against ONNX Runtime's answers (tests/data/trained/README.md), within 1e-4.
#include <gtest/gtest.h>

#include "tests/conformance/fixtures.h"
#include "tools/backend_case.h"

namespace tandem::test {
namespace {

TEST(Trained, PaddleOcrGivesWhatOnnxRuntimeGives) {
  const std::filesystem::path folder = std::filesystem::path(TANDEM_SOURCE_DIR) / "tests" / "data" / "trained" / "ch_ppocr_mobile_cls";
  for (const RunOptions& run : all_settings()) {
    const cli::CaseOutcome outcome = cli::run_case(folder, {.rtol = 0, .atol = 1e-4, .wanted = "output"}, run);
    EXPECT_EQ(outcome.verdict, cli::Verdict::kPass) << outcome.reason << "; " << say(run);
  }
}

}  // namespace
}  // namespace tandem::test
