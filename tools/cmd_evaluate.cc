// `tandem evaluate`: how good a model is on a labelled set.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "io/dataset.h"
#include "io/read_file.h"
#include "runtime/base/error.h"
#include "tools/classifier.h"
#include "tools/command.h"
#include "tools/image_run.h"
#include "tools/metrics.h"
#include "tools/options.h"
#include "tools/preprocess_flags.h"

namespace tandem::cli {
namespace {

struct Options {
  std::string model, data, bad_files = "stop";
  std::int64_t batch = 32, workers = 0;
  bool json = false, exif = false;
  PreprocessFlags preprocess;
  RunFlags run;
};

// From the set's classes to the network's outputs: by name when every name is among the labels, by order when none is and the counts agree.
std::vector<std::int64_t> map_classes(const std::vector<std::string>& names, const std::vector<std::string>& labels, std::int64_t outputs) {
  std::vector<std::int64_t> map;
  std::int64_t known = 0;
  for (const std::string& name : names) {
    const auto at = std::find(labels.begin(), labels.end(), name);
    known += at != labels.end();
    map.push_back(at == labels.end() ? -1 : at - labels.begin());
  }
  if (known == static_cast<std::int64_t>(names.size())) return map;
  if (known > 0) {
    const auto missing = std::find(map.begin(), map.end(), -1) - map.begin();
    throw InvalidData(fmt::format("{} of {} class names are among the model's labels, \"{}\" is not", known, names.size(),
                                  names[static_cast<std::size_t>(missing)]));
  }
  if (static_cast<std::int64_t>(names.size()) != outputs) {
    throw InvalidData(fmt::format(
        "the data has {} classes, the network {} outputs, and {}", names.size(), outputs,
        labels.empty() ? "there are no labels to tell which is which: give --labels FILE" : "none of the class names is among the labels"));
  }
  for (std::size_t i = 0; i < map.size(); ++i) map[i] = static_cast<std::int64_t>(i);
  return map;
}

std::string label_of(const std::vector<std::string>& labels, std::int64_t c) {
  return static_cast<std::size_t>(c) < labels.size() ? labels[static_cast<std::size_t>(c)] : std::to_string(c);
}

nlohmann::ordered_json number(double v) { return std::isfinite(v) ? nlohmann::ordered_json(v) : nlohmann::ordered_json(nullptr); }

std::string as_json(const Metrics& m, const std::vector<std::string>& labels, std::int64_t classes, std::int64_t failed) {
  nlohmann::ordered_json j = {{"samples", m.samples()}, {"failed", failed},           {"loss", number(m.loss())},    {"top1", m.top1()},
                              {"top5", m.top5()},       {"f1", number(m.macro_f1())}, {"auc", number(m.macro_auc())}};
  j["classes"] = nlohmann::ordered_json::array();
  j["confusion"] = nlohmann::ordered_json::array();
  const auto per_class = m.per_class();
  for (std::int64_t c = 0; c < classes; ++c) {
    const auto& k = per_class[static_cast<std::size_t>(c)];
    j["classes"].push_back({{"label", label_of(labels, c)},
                            {"samples", k.samples},
                            {"precision", k.precision},
                            {"recall", k.recall},
                            {"f1", k.f1},
                            {"auc", number(k.auc)}});
    nlohmann::ordered_json row = nlohmann::ordered_json::array();
    for (std::int64_t o = 0; o < classes; ++o) row.push_back(m.confused(c, o));
    j["confusion"].push_back(row);
  }
  return json_text(j);
}

std::string as_text(const Metrics& m, const std::vector<std::string>& labels, std::int64_t classes) {
  std::string text = fmt::format("samples {}  loss {:.4f}  top1 {:.4f}  top5 {:.4f}  F1 {:.4f}  AUC {:.4f}\n\n", m.samples(), m.loss(), m.top1(),
                                 m.top5(), m.macro_f1(), m.macro_auc());
  text += fmt::format("{:24} {:>8} {:>9} {:>9} {:>9} {:>9}\n", "class", "samples", "precision", "recall", "F1", "AUC");
  const auto per_class = m.per_class();
  for (std::int64_t c = 0; c < classes; ++c) {
    const auto& k = per_class[static_cast<std::size_t>(c)];
    if (k.samples > 0)
      text += fmt::format("{:24} {:>8} {:>9.4f} {:>9.4f} {:>9.4f} {:>9.4f}\n", label_of(labels, c).substr(0, 24), k.samples, k.precision, k.recall,
                          k.f1, k.auc);
  }
  constexpr std::int64_t kShown = 20;
  if (classes > kShown) return printable(text, 4000);
  text += "\nconfusion (rows: truth, columns: prediction)\n";
  for (std::int64_t c = 0; c < classes; ++c) {
    text += fmt::format("{:24}", label_of(labels, c).substr(0, 24));
    for (std::int64_t o = 0; o < classes; ++o) text += fmt::format(" {:>6}", m.confused(c, o));
    text += "\n";
  }
  return printable(text, 4000);
}

int run(const Options& o, const Console& console) {
  const RunOptions options = o.run.resolve(console);
  const Model model = Model::from_file(o.model);
  const io::Preprocess p = resolve_preprocess(model.graph(), o.preprocess, console);
  const Classifier classifier(model, options, batch_shape(model.graph(), p, 1), OutputType::kProbabilities, "");
  const auto labels = resolve_labels(model.graph(), o.preprocess, classifier.classes());
  const auto data = io::open_dataset(
      o.data, {.preprocess = p, .natural_order = o.preprocess.class_order == "natural", .exif_orientation = o.exif, .labels = labels});
  if (data->size() == 0) throw InvalidData(fmt::format("{} holds no samples", io::quoted(o.data)));
  if (data->sample_size() != classifier.sample_size())
    throw InvalidData(fmt::format("a sample has {} values, the network takes {}", data->sample_size(), classifier.sample_size()));
  const auto map = data->class_names().empty() ? std::vector<std::int64_t>() : map_classes(data->class_names(), labels, classifier.classes());
  say_unused_outputs(model.graph(), console);
  describe_run(classifier, o.run, options, o.batch, console);
  Metrics metrics(classifier.classes());
  std::int64_t failed = 0;
  classifier.for_each(
      0, data->size(), o.batch, static_cast<int>(o.workers), [&](std::int64_t i, std::span<float> out) { data->load(i, out); },
      [&](const Classifier::Item& item) {
        if (!item.error.empty()) {
          if (o.bad_files == "stop") throw InvalidData(item.error + "\n(--bad-files skip leaves such files out)");
          console.warn(item.error);
          ++failed;
          return;
        }
        std::int64_t label = data->label(item.index);
        if (!map.empty() && label >= 0) label = map[static_cast<std::size_t>(label)];
        if (label < 0 || label >= classifier.classes()) {
          throw InvalidData(
              fmt::format("{} has label {}, the network has {} outputs", io::quoted(data->name(item.index)), label, classifier.classes()));
        }
        metrics.add(label, item.scores);
      },
      [&] { console.detail(fmt::format("{} of {}, top1 {:.4f}", metrics.samples(), data->size(), metrics.top1())); });
  print(o.json ? as_json(metrics, labels, classifier.classes(), failed) : as_text(metrics, labels, classifier.classes()));
  return 0;
}

}  // namespace

Command evaluate_command() {
  auto o = std::make_shared<Options>();
  return {.name = "evaluate",
          .summary = "Measures a model on a labelled set: loss, top-1, top-5, a table of the classes, the confusion matrix, AUC and F1.",
          .example = "tandem evaluate model.onnx photos/val --devices cpu:2\ntandem evaluate model.onnx test.csv --preprocess torch --json",
          .declare =
              [o](OptionSet& s) {
                s.positional("MODEL", o->model, "an .onnx file");
                s.positional("DATA", o->data, "class folders, a list with labels, idx(.gz), .npy, .npz or .h5");
                declare_batch(s, o->batch);
                s.integer("--workers", "N", o->workers, 0, 4096, "images decoded ahead; 0: two batches");
                s.choice("--bad-files", {"stop", "skip"}, o->bad_files, "what a damaged file does");
                s.flag("--json", o->json, "print one JSON object");
                s.flag("--exif-orientation", o->exif, "turn images as their EXIF tag says (Pillow and Keras do not)");
                declare_preprocess_flags(s, o->preprocess);
                declare_run_flags(s, o->run);
              },
          .run = [o](const Console& console) { return run(*o, console); },
          .subcommands = {}};
}

}  // namespace tandem::cli
