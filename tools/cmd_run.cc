// `tandem run`: tensors in, tensors out, no image handling.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "importer/tensor_proto.h"
#include "io/npy.h"
#include "runtime/base/error.h"
#include "runtime/base/safe_file.h"
#include "tools/command.h"
#include "tools/options.h"
#include "tools/tensor_files.h"

namespace tandem::cli {
namespace {

struct Options {
  std::string model, output;
  std::vector<std::string> inputs;
  RunFlags run;
};

std::vector<Tensor> read_inputs(const Graph& graph, const std::vector<std::string>& given) {
  std::vector<Tensor> inputs(graph.inputs.size());
  std::string names;
  for (const ValueId id : graph.inputs) names += (names.empty() ? "" : ", ") + graph.value(id).name;
  for (const std::string& text : given) {
    std::size_t found = graph.inputs.size(), length = 0;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const std::string& name = graph.value(graph.inputs[i]).name;
      if (name.size() >= length && text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=') {
        found = i;
        length = name.size();
      }
    }
    if (found == graph.inputs.size())
      throw UsageError(fmt::format("option --input: expected NAME=FILE with a name of {}, found \"{}\"", names, text));
    if (inputs[found]) throw UsageError(fmt::format("option --input: \"{}\" is given twice", graph.value(graph.inputs[found]).name));
    inputs[found] = read_tensor(text.substr(length + 1));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) throw UsageError(fmt::format("the model's input \"{0}\" is not given: add --input {0}=FILE", graph.value(graph.inputs[i]).name));
  }
  return inputs;
}

int run(const Options& o, const Console& console) {
  const RunOptions options = o.run.resolve(console);
  const Model model = Model::from_file(o.model);
  const auto inputs = read_inputs(model.graph(), o.inputs);
  const Predictor predictor(model, options);
  const auto outputs = with_context([&] { return o.model; }, [&] { return predictor.run(inputs); });
  if (o.run.log_placement) log_placement(o.run, options, predictor.plan_for(inputs), console);
  std::error_code error;
  std::filesystem::create_directories(o.output, error);
  if (error) throw InvalidData(fmt::format("cannot make the folder \"{}\": {}", o.output, error.message()));
  const auto names = output_file_names(model.graph());
  std::string list;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    io::write_npy(o.output + "/" + names[i] + ".npy", outputs[i]);
    write_tensor_file(o.output + "/" + names[i] + ".pb", model.graph().value(model.graph().outputs[i]).name, outputs[i]);
    list += model.graph().value(model.graph().outputs[i]).name + "\n";
  }
  save_file(o.output + "/outputs.txt", std::string_view(list));
  console.info(fmt::format("{} outputs in {}", outputs.size(), o.output));
  return 0;
}

}  // namespace

Command run_command() {
  auto o = std::make_shared<Options>();
  return {
      .name = "run",
      .summary = "Runs a model on raw tensors: no image handling. Writes NAME.npy and NAME.pb for each output, and outputs.txt.",
      .example =
          "tandem run model.onnx --input image=x.npy --output out\ntandem run model.onnx --input a=a.pb --input b=b.pb --output out --precision bf16",
      .declare =
          [o](OptionSet& s) {
            s.positional("MODEL", o->model, "an .onnx file");
            s.texts("--input", "NAME=FILE", o->inputs, "an input of the graph and its tensor (.npy or .pb); once for each input");
            s.text("--output", "DIR", o->output, "folder for the outputs").required = true;
            declare_run_flags(s, o->run);
          },
      .run = [o](const Console& console) { return run(*o, console); },
      .subcommands = {}};
}

}  // namespace tandem::cli
