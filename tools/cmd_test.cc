// `tandem test`: folders in the layout of ONNX's backend tests.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/safe_file.h"
#include "tools/backend_case.h"
#include "tools/command.h"
#include "tools/options.h"

namespace tandem::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> folders;
  CaseOptions compare;
  std::string json;
  RunFlags run;
};

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return printable(text, 400);
}

void tolerance(OptionSet& s, const char* name, const char* value, std::optional<double>& to, double most, const char* help) {
  s.custom(
      name, value, "", [&to, most](const std::string& text) { to = to_number(text, 0, most); }, help);
}

int run(const Options& o, const Console& console) {
  const RunOptions options = o.run.resolve(console);
  std::vector<fs::path> cases;
  for (const std::string& folder : o.folders) {
    if (!fs::is_directory(folder)) throw InvalidData(fmt::format("\"{}\" is not a folder", folder));
    const auto found = find_cases(folder);
    cases.insert(cases.end(), found.begin(), found.end());
    if (found.empty()) throw InvalidData(fmt::format("no model.onnx in \"{}\" or the folders below", folder));
  }
  int count[3] = {0, 0, 0};
  std::function<void(const RunReport&)> placement;
  if (o.run.log_placement) placement = [&](const RunReport& report) { log_placement(o.run, options, report, console); };
  nlohmann::ordered_json records = nlohmann::ordered_json::array();
  for (const fs::path& folder : cases) {
    const CaseOutcome r = run_case(folder, o.compare, options, placement);
    ++count[static_cast<int>(r.verdict)];
    print(fmt::format("{} {}{}\n", word_of(r.verdict), one_line(r.name), r.reason.empty() ? "" : " (" + one_line(r.reason) + ")"));
    if (!r.tolerance.empty()) console.info(fmt::format("{}: {}", one_line(r.name), r.tolerance));
    records.push_back({{"name", r.name}, {"result", word_of(r.verdict)}, {"reason", r.reason}});
    if (!r.tolerance.empty()) records.back()["tolerance"] = r.tolerance;
  }
  print(fmt::format("passed {}, failed {}, refused {}\n", count[0], count[1], count[2]));
  if (!o.json.empty()) save_file(o.json, std::string_view(json_text(records, 1)));
  return count[1] == 0 ? 0 : 1;
}

}  // namespace

Command test_command() {
  auto o = std::make_shared<Options>();
  return {.name = "test",
          .summary = "Runs folders in the layout of ONNX's backend tests and compares; exit code 0 only when nothing failed.",
          .example = "tandem test onnx/backend/test/data/node\ntandem test test_conv test_relu --rtol 1e-4 --json results.json",
          .declare =
              [o](OptionSet& s) {
                s.positionals("DIR", o->folders, "a case (model.onnx, test_data_set_*/input_*.pb and output_*.pb), or a folder of cases");
                tolerance(
                    s, "--rtol", "R", o->compare.rtol, 1,
                    "allowed difference relative to the expected value (default: 0.001; 0.0078 where the weights are float16, 0.0625 bfloat16)");
                tolerance(s, "--atol", "A", o->compare.atol, 1e9,
                          "allowed difference besides (default: 1e-7; with float16 or bfloat16 weights as --rtol, times the output's largest value)");
                s.text("--json", "FILE", o->json, "also write the results as a JSON list");
                declare_run_flags(s, o->run);
              },
          .run = [o](const Console& console) { return run(*o, console); },
          .subcommands = {}};
}

}  // namespace tandem::cli
