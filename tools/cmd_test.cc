// `tandem test`: folders in the layout of ONNX's backend tests.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "importer/importer.h"
#include "importer/tensor_proto.h"
#include "io/save_file.h"
#include "runtime/base/error.h"
#include "tools/command.h"
#include "tools/options.h"
#include "tools/tensor_files.h"

namespace tandem::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> folders;
  double rtol = 1e-3, atol = 1e-7;
  std::string json;
  RunFlags run;
};

enum class Verdict { kPass, kFail, kRefused };
const char* word(Verdict v) { return v == Verdict::kPass ? "PASS" : v == Verdict::kFail ? "FAIL" : "REFUSED"; }

struct Outcome {
  std::string name;
  Verdict verdict = Verdict::kPass;
  std::string reason;
};

std::vector<fs::path> sorted_children(const fs::path& folder) {
  std::vector<fs::path> children;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) children.push_back(it->path());
  if (error) throw InvalidData(fmt::format("cannot read the folder \"{}\": {}", folder.string(), error.message()));
  std::sort(children.begin(), children.end());
  return children;
}

// Folders below that hold a model.onnx.
void find_cases(const fs::path& folder, int depth, std::vector<fs::path>& cases) {
  if (fs::exists(folder / "model.onnx")) {
    cases.push_back(folder);
    return;
  }
  if (depth == 0) return;
  for (const fs::path& child : sorted_children(folder)) {
    if (fs::is_directory(child)) find_cases(child, depth - 1, cases);
  }
}

// input_0.pb, input_1.pb ... of a data set.
std::vector<NamedTensor> read_numbered(const fs::path& folder, const std::string& stem) {
  std::vector<NamedTensor> tensors;
  for (int i = 0; fs::exists(folder / fmt::format("{}_{}.pb", stem, i)); ++i)
    tensors.push_back(read_tensor_file(folder / fmt::format("{}_{}.pb", stem, i)));
  return tensors;
}

// Old data stores the bits of bfloat16 as uint16.
Tensor as_declared(const Tensor& t, DType declared) {
  if (declared != DType::kBF16 || t.dtype() != DType::kU16) return t;
  Tensor bits(DType::kBF16, t.shape());
  std::copy_n(static_cast<const std::byte*>(t.data()), t.bytes(), static_cast<std::byte*>(bits.mutable_data()));
  return bits;
}

// Values for the graph's inputs: by name where the files carry names, else in order.
std::vector<Tensor> match_inputs(const Graph& graph, const std::vector<NamedTensor>& given) {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string& name = graph.value(graph.inputs[i]).name;
    const DType declared = graph.declared_inputs[i].dtype;
    const auto named = std::find_if(given.begin(), given.end(), [&](const NamedTensor& t) { return t.name == name; });
    if (named != given.end())
      inputs.push_back(as_declared(named->tensor, declared));
    else if (i < given.size())
      inputs.push_back(as_declared(given[i].tensor, declared));
    else
      throw InvalidData(fmt::format("no value for input \"{}\"", name));
  }
  return inputs;
}

std::string check_set(const Predictor& predictor, const fs::path& folder, const Options& o) {
  const Graph& graph = predictor.model().graph();
  const auto outputs = predictor.run(match_inputs(graph, read_numbered(folder, "input")));
  const auto wanted = read_numbered(folder, "output");
  if (wanted.empty()) return "no output_0.pb to compare with";
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i >= outputs.size()) return fmt::format("the graph has {} outputs, the data {}", outputs.size(), wanted.size());
    const std::string reason = difference(outputs[i], as_declared(wanted[i].tensor, graph.declared_outputs[i].dtype), o.rtol, o.atol);
    if (!reason.empty()) return fmt::format("output {}: {}", graph.value(graph.outputs[i]).name, reason);
  }
  return {};
}

Outcome run_case(const fs::path& folder, const Options& o, const RunOptions& options) {
  Outcome outcome{.name = folder.filename().string()};
  try {
    ImportOptions import;
    import.refuse_random = true;
    const Predictor predictor(Model(std::make_shared<const Graph>(import_file(folder / "model.onnx", import))), options);
    std::vector<fs::path> sets;
    for (const fs::path& child : sorted_children(folder)) {
      if (fs::is_directory(child) && child.filename().string().starts_with("test_data_set_")) sets.push_back(child);
    }
    if (sets.empty()) sets.push_back(folder);
    for (const fs::path& set : sets) {
      const std::string reason = check_set(predictor, set, o);
      if (reason.empty()) continue;
      return {outcome.name, Verdict::kFail, reason};
    }
  } catch (const Unsupported& e) {
    return {outcome.name, Verdict::kRefused, e.what()};
  } catch (const Error& e) {
    return {outcome.name, Verdict::kFail, e.what()};
  }
  return outcome;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return printable(text, 400);
}

int run(const Options& o, const Console& console) {
  const RunOptions options = o.run.resolve(console);
  std::vector<fs::path> cases;
  for (const std::string& folder : o.folders) {
    if (!fs::is_directory(folder)) throw InvalidData(fmt::format("\"{}\" is not a folder", folder));
    const std::size_t before = cases.size();
    find_cases(folder, 3, cases);
    if (cases.size() == before) throw InvalidData(fmt::format("no model.onnx in \"{}\" or the folders below", folder));
  }
  int count[3] = {0, 0, 0};
  nlohmann::ordered_json records = nlohmann::ordered_json::array();
  for (const fs::path& folder : cases) {
    const Outcome r = run_case(folder, o, options);
    ++count[static_cast<int>(r.verdict)];
    print(fmt::format("{} {}{}\n", word(r.verdict), one_line(r.name), r.reason.empty() ? "" : " (" + one_line(r.reason) + ")"));
    records.push_back({{"name", r.name}, {"result", word(r.verdict)}, {"reason", r.reason}});
  }
  print(fmt::format("passed {}, failed {}, refused {}\n", count[0], count[1], count[2]));
  if (!o.json.empty()) io::save_file(o.json, std::string_view(records.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"));
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
                s.number("--rtol", "R", o->rtol, 0, 1, "allowed difference relative to the expected value");
                s.number("--atol", "A", o->atol, 0, 1e9, "allowed difference besides");
                s.text("--json", "FILE", o->json, "also write the results as a JSON list");
                declare_run_flags(s, o->run);
              },
          .run = [o](const Console& console) { return run(*o, console); },
          .subcommands = {}};
}

}  // namespace tandem::cli
