// `tandem convert`: import, repair or fold, write; a new head; records of preprocessing and labels.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "importer/exporter.h"
#include "importer/importer.h"
#include "models/trainable.h"
#include "runtime/base/error.h"
#include "runtime/graph/infer.h"
#include "runtime/graph/passes.h"
#include "tools/command.h"
#include "tools/model_inputs.h"
#include "tools/preprocess_flags.h"
#include "tools/tandem.h"
#include "tools/trainable_report.h"

namespace tandem::cli {
namespace {

struct Options {
  std::string model, output, batch;
  std::int64_t opset = 0, classes = 0, seed = 0;
  bool inference = false, trainable = false;
  PreprocessFlags preprocess;
};

// Scores that the network gives for an image; 0 where it gives something else, or the size of its images is open.
std::int64_t class_count(const Graph& graph, std::int64_t image_size) {
  Graph shaped = graph;
  ShapeFlags flags;
  flags.size = image_size;
  try {
    fold_constants(shaped);
    infer(shaped, InputBinding{concrete_shapes(shaped, flags), {}});
  } catch (const UsageError&) {
    return 0;  // an open shape
  }
  const Shape& shape = shaped.value(shaped.outputs[0]).shape;
  const auto wide = std::count_if(shape.begin(), shape.end(), [](std::int64_t d) { return d > 1; });
  const bool row = shape.size() >= 2 && wide <= (shape[0] > 1 ? 2 : 1);
  return row ? elements(std::span(shape).subspan(1)) : 0;
}

bool is_open(const Value& input) {
  return !input.shape_known || std::any_of(input.shape.begin(), input.shape.end(), [](std::int64_t d) { return d < 0; });
}

// Normalisations go into their convolutions; gives their number. Arithmetic on shapes is folded only where the file fixes every dimension and
// no input steers them: anywhere else a folded shape would hold for one size alone.
int fold_for_inference(Graph& graph) {
  fold_constants(graph);
  const bool open = std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](ValueId id) { return is_open(graph.value(id)); });
  if (!open && steering_inputs(graph).empty()) {
    Graph shaped = graph;
    infer(shaped, InputBinding{concrete_shapes(shaped, {}), {}});
    graph = std::move(shaped);
  }
  return fold_into_convolutions(graph);
}

void set_batch(Graph& graph, const std::string& text) {
  const std::int64_t n = text == "dynamic" ? -1 : to_integer(text, 1, 1 << 20);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    Value& v = graph.value(graph.inputs[i]);
    if (!v.shape_known || v.shape.empty()) continue;
    v.shape[0] = n;
    if (i < graph.declared_inputs.size() && graph.declared_inputs[i].shape_known && !graph.declared_inputs[i].shape.empty()) {
      graph.declared_inputs[i].shape[0] = n;
      if (n >= 0 && !graph.declared_inputs[i].symbols.empty()) graph.declared_inputs[i].symbols[0].clear();
    }
  }
}

void put_new_head(Graph& graph, const Options& o, const Console& console) {
  const auto head = models::find_head(graph);
  if (!head) throw Unsupported("option --classes: the network's head (a last Gemm, MatMul or 1x1 Conv) was not found");
  models::replace_head(graph, *head, models::glorot_uniform(head->inputs, o.classes, static_cast<std::uint64_t>(o.seed)), {});
  for (const char* key : {"tandem.labels", "tandem.loss"}) graph.metadata.erase(key);  // those of the old classes
  console.info(fmt::format("new head \"{}\": {} x {} (Glorot uniform, seed {})", head->layer, head->inputs, o.classes, o.seed));
}

int run(const Options& o, const Console& console) {
  if (o.seed != 0 && o.classes == 0) throw UsageError("option --seed: it draws the new head of --classes, which is not given");
  if (o.trainable && o.inference) throw UsageError("--trainable and --inference contradict each other: give one of them");
  FileRecord record;
  ImportOptions import;
  import.record = &record;
  const Model model(std::make_shared<const Graph>(import_file(o.model, import)));
  Graph graph = model.graph();
  int count = 0;
  const std::string size_text = o.preprocess.image_size.substr(0, o.preprocess.image_size.find('x'));
  const std::int64_t size = size_text.empty() ? 224 : to_integer(size_text, 1, 16384);
  std::string report;
  with_context([&] { return o.model; },
               [&] {
                 if (o.trainable) report = make_trainable(graph);
                 if (o.classes > 0) put_new_head(graph, o, console);
                 if (!o.batch.empty()) set_batch(graph, o.batch);  // before it is folded into shapes
                 if (o.inference) count = fold_for_inference(graph);
               });
  if (o.preprocess.any()) graph.metadata["tandem.preprocess"] = io::to_json(resolve_preprocess(graph, o.preprocess, console));
  if (!o.preprocess.labels.empty()) {
    const std::int64_t classes = with_context([&] { return o.model; }, [&] { return class_count(graph, size); });
    graph.metadata["tandem.labels"] = io::labels_json(resolve_labels(graph, o.preprocess, classes));
  }
  write_onnx(graph, o.output, {.opset = o.opset, .record = &record});
  console.info(fmt::format("{}: {} nodes, {} folded into convolutions{}", o.output, graph.nodes.size(), count,
                           graph.metadata.count("tandem.preprocess") ? ", preprocessing recorded" : ""));
  if (o.trainable)
    print(printable(report, 2000));
  else
    for (const std::string& note : graph.origin.notes) console.detail(note);
  return 0;
}

}  // namespace

Command convert_command() {
  auto o = std::make_shared<Options>();
  return {.name = "convert",
          .summary =
              "Reads a model and writes it as standard ONNX: folded for inference or ready for fine-tuning, with a record of its preprocessing and "
              "labels.",
          .example =
              "tandem convert in.onnx -o out.onnx --inference\ntandem convert in.onnx -o out.onnx --trainable --classes 12\ntandem convert in.onnx "
              "-o out.onnx --preprocess tf --image-size 299 --resize "
              "pil-bicubic --labels labels.txt",
          .declare =
              [o](OptionSet& s) {
                s.positional("IN", o->model, "an .onnx file");
                s.text("--output,-o", "OUT", o->output, "the .onnx file to write").required = true;
                s.flag("--inference", o->inference, "fold normalisations into convolutions");
                s.flag("--trainable", o->trainable, "make it ready for fine-tuning and report what the exporter left to train");
                s.text("--batch-size,--batch", "N|dynamic", o->batch, "first dimension of the inputs");
                s.integer("--opset", "N", o->opset, 0, 25, "opset to write; 0: the oldest from 17 on that can say every node");
                s.integer("--classes", "N", o->classes, 0, 1 << 20, "a new head for so many classes").default_text = "";
                s.integer("--seed", "N", o->seed, 0, std::numeric_limits<std::int64_t>::max(), "seed of the new head");
                declare_preprocess_flags(s, o->preprocess);
              },
          .run = [o](const Console& console) { return run(*o, console); },
          .subcommands = {}};
}

}  // namespace tandem::cli
