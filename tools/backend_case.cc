#include "tools/backend_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "importer/importer.h"
#include "importer/tensor_proto.h"
#include "runtime/base/error.h"
#include "tools/tensor_files.h"

namespace tandem::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kBF16Unit = 0x1p-7;  // the distance of neighbours, relative to the smaller
constexpr double kRoundings = 16;     // that the layers of a network in half precision add up to: twice what exports of Xception show

// The largest relative error of one rounding; 0 for types that need no tolerance of their own.
double rounding_of(DType t) { return t == DType::kF16 ? 0x1p-11 : t == DType::kBF16 ? 0x1p-8 : 0; }

double largest(const Tensor& t) {
  double most = 0;
  for (const double v : t.to_doubles()) most = std::isfinite(v) ? std::max(most, std::abs(v)) : most;
  return most;
}

std::vector<fs::path> sorted_children(const fs::path& folder) {
  std::vector<fs::path> children;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) children.push_back(it->path());
  if (error) throw InvalidData(fmt::format("cannot read the folder \"{}\": {}", folder.string(), error.message()));
  std::sort(children.begin(), children.end());
  return children;
}

// input_0.pb, input_1.pb ... of a data set.
std::vector<NamedTensor> read_numbered(const fs::path& folder, const std::string& stem) {
  std::vector<NamedTensor> tensors;
  for (int i = 0; fs::exists(folder / fmt::format("{}_{}.pb", stem, i)); ++i)
    tensors.push_back(read_tensor_file(folder / fmt::format("{}_{}.pb", stem, i)));
  return tensors;
}

bool holds_bits(const Tensor& t, DType declared) { return declared == DType::kBF16 && t.dtype() == DType::kU16; }

Tensor as_declared(const Tensor& t, DType declared) {
  if (!holds_bits(t, declared)) return t;
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

bool fits(const Value& declared, const Shape& shape) {
  return !declared.shape_known || std::equal(declared.shape.begin(), declared.shape.end(), shape.begin(), shape.end(),
                                             [](std::int64_t want, std::int64_t have) { return want < 0 || want == have; });
}

bool all_fit(const Graph& graph, const std::vector<Tensor>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!fits(graph.value(graph.inputs[i]), inputs[i].shape())) return false;
  }
  return true;
}

// The graph without the declared shapes that the inputs contradict.
Graph with_shapes_of(Graph graph, const std::vector<Tensor>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Value& v = graph.value(graph.inputs[i]);
    if (!fits(v, inputs[i].shape())) v.shape_known = graph.declared_inputs[i].shape_known = false;
  }
  return graph;
}

using Planned = std::function<void(const RunReport&)>;

std::vector<Tensor> run_set(const Predictor& predictor, const std::vector<Tensor>& inputs, const RunOptions& run, const Planned& planned) {
  const Graph& graph = predictor.model().graph();
  if (!all_fit(graph, inputs)) {
    return run_set(Predictor(Model(std::make_shared<const Graph>(with_shapes_of(graph, inputs))), run), inputs, run, planned);
  }
  auto outputs = predictor.run(inputs);
  if (planned) planned(predictor.plan_for(inputs));
  return outputs;
}

// Where the outputs differ from the data set's, or "".
std::string check_set(const Predictor& predictor, const fs::path& folder, const CaseOptions& o, double rounding, const RunOptions& run,
                      const Planned& planned) {
  const Graph& graph = predictor.model().graph();
  const auto outputs = run_set(predictor, match_inputs(graph, read_numbered(folder, "input")), run, planned);
  const auto wanted = read_numbered(folder, o.wanted);
  if (wanted.empty()) return fmt::format("no {}_0.pb to compare with", o.wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i >= outputs.size()) return fmt::format("the graph has {} outputs, the data {}", outputs.size(), wanted.size());
    const DType declared = graph.declared_outputs[i].dtype;
    const Tensor want = as_declared(wanted[i].tensor, declared);
    double rtol = o.rtol.value_or(std::max(1e-3, kRoundings * rounding));
    if (holds_bits(wanted[i].tensor, declared)) rtol = std::max(rtol, kBF16Unit);
    const double atol = o.atol ? *o.atol : rounding > 0 ? kRoundings * rounding * largest(want) : 1e-7;
    const std::string reason = difference(outputs[i], want, rtol, atol);
    if (!reason.empty()) return fmt::format("output {}: {}", graph.value(graph.outputs[i]).name, reason);
  }
  return {};
}

std::string tolerance_text(DType weights, const CaseOptions& o) {
  const double own = kRoundings * rounding_of(weights);
  return fmt::format("{} weights: rtol {:.3g}, atol {:.3g}{}", name_of(weights), o.rtol.value_or(own), o.atol.value_or(own),
                     o.atol ? "" : " times the largest value of the output");
}

}  // namespace

const char* word_of(Verdict v) { return v == Verdict::kPass ? "PASS" : v == Verdict::kFail ? "FAIL" : "REFUSED"; }

std::vector<fs::path> find_cases(const fs::path& folder, int depth) {
  if (fs::exists(folder / "model.onnx")) return {folder};
  std::vector<fs::path> cases;
  if (depth == 0) return cases;
  for (const fs::path& child : sorted_children(folder)) {
    if (!fs::is_directory(child)) continue;
    for (fs::path& found : find_cases(child, depth - 1)) cases.push_back(std::move(found));
  }
  return cases;
}

CaseOutcome run_case(const fs::path& folder, const CaseOptions& options, const RunOptions& run, const Planned& planned) {
  const fs::path full = fs::absolute(folder).lexically_normal();  // "cases/a/" and "." have names too
  const std::string name = (full.has_filename() ? full : full.parent_path()).filename().string();
  std::string tolerance;
  try {
    FileRecord record;
    ImportOptions import;
    import.as_written = true;
    import.record = &record;
    const Predictor predictor(Model(std::make_shared<const Graph>(import_file(folder / "model.onnx", import))), run);
    const double rounding = rounding_of(record.weights);
    if (rounding > 0) tolerance = tolerance_text(record.weights, options);
    std::vector<fs::path> sets;
    for (const fs::path& child : sorted_children(folder)) {
      if (fs::is_directory(child) && child.filename().string().starts_with("test_data_set_")) sets.push_back(child);
    }
    if (sets.empty()) sets.push_back(folder);
    for (const fs::path& set : sets) {
      const std::string reason = check_set(predictor, set, options, rounding, run, planned);
      if (!reason.empty()) return {name, Verdict::kFail, reason, tolerance};
    }
  } catch (const Unsupported& e) {
    return {name, Verdict::kRefused, e.what(), tolerance};
  } catch (const Error& e) {
    return {name, Verdict::kFail, e.what(), tolerance};
  }
  return {name, Verdict::kPass, {}, tolerance};
}

}  // namespace tandem::cli
