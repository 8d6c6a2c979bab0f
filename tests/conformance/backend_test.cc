// ONNX's published backend cases (Debian's libonnx-testdata: opset 1 to 17, 1,072 cases), through what `tandem test` runs.
// tests/data/conformance/refused.txt holds the refused ones and why; every other case must pass.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "runtime/base/error.h"
#include "tools/backend_case.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using cli::CaseOutcome;
using cli::Verdict;

// What ONNX Runtime 1.32 passes of the 900 cases whose operators tandem has and that use no strings, sequences or optionals.
constexpr int kOnnxRuntimePasses = 848;

const std::vector<std::string> kGroups = {"node", "pytorch-converted", "pytorch-operator", "simple"};

// "group/case" and what the refusal must name.
std::map<std::string, std::vector<std::string>> read_refused() {
  std::map<std::string, std::vector<std::string>> refused;
  std::ifstream file(fs::path(TANDEM_SOURCE_DIR) / "tests" / "data" / "conformance" / "refused.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    const std::size_t colon = line.find(": ");
    EXPECT_NE(colon, std::string::npos) << line;
    if (colon == std::string::npos) continue;
    std::istringstream words(line.substr(colon + 2));
    for (std::string word; std::getline(words >> std::ws, word, ';');) refused[line.substr(0, colon)].push_back(word);
  }
  return refused;
}

// `word` stands in the text and is not the beginning of a longer one.
bool names(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if (at + word.size() == text.size() || !std::isalnum(static_cast<unsigned char>(text[at + word.size()]))) return true;
  }
  return false;
}

class Backend {
 public:
  Backend(int devices, bool passes) {
    run_.devices = cpu_devices(devices);
    run_.threads = 1;
    run_.passes = passes;
  }

  // Every case of the group; a case whose outcome is not the manifest's fails the test.
  void check(const std::string& group) {
    for (const fs::path& folder : cli::find_cases(fs::path(TANDEM_ONNX_DATA) / group)) {
      const CaseOutcome outcome = cli::run_case(folder, {.rtol = 1e-3, .atol = 1e-7}, run_);
      const std::string name = group + "/" + outcome.name;
      ++count_[static_cast<int>(outcome.verdict)];
      const auto wanted = refused_.find(name);
      if (wanted == refused_.end()) {
        EXPECT_EQ(outcome.verdict, Verdict::kPass) << cli::word_of(outcome.verdict) << " " << name << ": " << outcome.reason;
        continue;
      }
      EXPECT_EQ(outcome.verdict, Verdict::kRefused) << cli::word_of(outcome.verdict) << " " << name << ", which the manifest has as refused";
      for (const std::string& word : wanted->second)
        EXPECT_TRUE(names(outcome.reason, word)) << name << ": no \"" << word << "\": " << outcome.reason;
      refused_.erase(wanted);
    }
  }

  int count(Verdict v) const { return count_[static_cast<int>(v)]; }
  // The manifest's cases that were not met.
  const std::map<std::string, std::vector<std::string>>& rest() const { return refused_; }

 private:
  RunOptions run_;
  std::map<std::string, std::vector<std::string>> refused_ = read_refused();
  int count_[3] = {0, 0, 0};
};

void check_all(int devices, bool passes) {
  Backend backend(devices, passes);
  for (const std::string& group : kGroups) backend.check(group);
  for (const auto& [name, words] : backend.rest()) ADD_FAILURE() << name << " is in the manifest and not among the cases";
  std::cout << "ONNX's cases: passed " << backend.count(Verdict::kPass) << " (ONNX Runtime " << kOnnxRuntimePasses << "), failed "
            << backend.count(Verdict::kFail) << ", refused " << backend.count(Verdict::kRefused) << "\n";
  EXPECT_GE(backend.count(Verdict::kPass), kOnnxRuntimePasses);
}

TEST(Backend, EveryPublishedCasePassesOrIsRefusedByName) { check_all(1, true); }
TEST(Backend, EveryPublishedCaseOnThreeDevicesWithoutPasses) { check_all(3, false); }

// The exports of opset 6 and before, which ONNX Runtime does not take: none of them is in the manifest.
TEST(Backend, NoExportOfPyTorchIsRefused) {
  for (const auto& [name, words] : read_refused()) EXPECT_FALSE(name.starts_with("pytorch")) << name;
}

}  // namespace
}  // namespace tandem::test
