// `tandem evaluate`: how good a model is on a labelled set.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "io/dataset.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"
#include "tools/classifier.h"
#include "tools/command.h"
#include "tools/data_notes.h"
#include "tools/image_run.h"
#include "tools/metrics.h"
#include "tools/options.h"
#include "tools/preprocess_flags.h"
#include "tools/targets.h"
#include "tools/value_metrics.h"

namespace tandem::cli {
namespace {

struct Options {
  std::string model, data, bad_files = "stop", loss = "auto";
  std::int64_t batch = 32, workers = 0;
  bool json = false, exif = false;
  PreprocessFlags preprocess;
  RunFlags run;
};

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

struct Data {
  std::unique_ptr<io::Dataset> set;
  LossChoice loss;
  bool has_shares() const { return loss.kind == "categorical" && set->value_count() > 0; }
};

// The set as the loss takes it: --loss, else what the model was trained with, else what fits its end and the targets.
Data open_data(const Options& o, const Graph& graph, const io::Preprocess& p, std::span<const std::string> labels) {
  const std::string recorded = recorded_loss(graph), word = o.loss == "auto" && !recorded.empty() ? loss_word(recorded) : o.loss;
  io::DatasetOptions options{.preprocess = p, .natural_order = o.preprocess.class_order == "natural", .exif_orientation = o.exif, .labels = labels};
  options.targets = targets_for(word);
  Data data{.set = io::open_dataset(o.data, options), .loss = {}};
  check_labelled(*data.set, o.data);
  data.loss = choose_loss(graph, *data.set, word, false);
  // Rows of zeros and ones are one kind of targets, whether or not each of this set's has a single 1.
  if (data.loss.kind == "binary" && data.set->value_count() == 0 && data.set->class_names().empty() && data.set->label(0) >= 0) {
    options.targets = io::Targets::kValues;
    auto rows = io::open_dataset(o.data, options);
    if (rows->value_count() > 1) return {std::move(rows), {"binary", io::Targets::kValues, data.loss.why}};
  }
  options.targets = data.loss.targets;
  if ((options.targets == io::Targets::kValues) != (data.set->value_count() > 0)) data.set = io::open_dataset(o.data, options);
  return data;
}

// Gives every sample that can be read to `take`; how many cannot.
std::int64_t measure(const Options& o, const Classifier& classifier, const io::Dataset& data, const Console& console,
                     const std::function<void(const Classifier::Item&)>& take, const std::function<std::string()>& brief) {
  std::int64_t failed = 0, taken = 0;
  classifier.for_each(
      0, data.size(), o.batch, static_cast<int>(o.workers), [&](std::int64_t i, std::span<float> out) { data.load(i, out); },
      [&](const Classifier::Item& item) {
        if (item.error.empty()) {
          ++taken;
          return take(item);
        }
        if (o.bad_files == "stop") throw InvalidData(item.error + "\n(--bad-files skip leaves such files out)");
        console.warn(item.error);
        ++failed;
      },
      [&] { console.detail(fmt::format("{} of {}, {}", taken, data.size(), brief())); });
  if (taken == 0) throw InvalidData(fmt::format("none of the {} samples of {} can be read", failed, quote_whole(o.data)));
  return failed;
}

void evaluate_values(const Options& o, const Model& model, const Classifier& classifier, const Data& data, const std::vector<std::string>& labels,
                     const Console& console) {
  if (data.set->value_count() != classifier.classes())
    throw InvalidData(fmt::format("{} has {} targets, the network gives {} numbers", quote_whole(data.set->name(0)), data.set->value_count(),
                                  classifier.classes()));
  ValueMetrics metrics(Scoring(model.graph(), data.loss.kind), data.loss.kind, classifier.classes(), labels);
  std::vector<float> target(static_cast<std::size_t>(classifier.classes()));
  const std::int64_t failed = measure(
      o, classifier, *data.set, console,
      [&](const Classifier::Item& item) {
        data.set->values(item.index, target);
        metrics.add(item.scores, target);
      },
      [&] { return metrics.brief(); });
  print(o.json ? metrics.as_json(failed) : metrics.as_text());
}

std::int64_t class_in_set(const Data& data, std::int64_t i) { return data.has_shares() ? io::class_of_shares(*data.set, i) : data.set->label(i); }

// The loss of a class by the network's outputs as they are scored: with a sigmoid for each class that of all of them.
double loss_of_class(std::int64_t label, std::span<const float> probabilities) {
  double loss = 0;
  for (std::size_t c = 0; c < probabilities.size(); ++c) {
    const double p = std::clamp(static_cast<double>(probabilities[c]), 1e-7, 1 - 1e-7);
    loss -= std::log(static_cast<std::int64_t>(c) == label ? p : 1 - p);
  }
  return loss / static_cast<double>(probabilities.size());
}

double loss_of_shares(const io::Dataset& data, std::int64_t i, std::span<const float> probabilities) {
  std::vector<float> shares(static_cast<std::size_t>(data.value_count()));
  data.values(i, shares);
  double loss = 0;
  for (std::size_t c = 0; c < shares.size(); ++c)
    loss -= static_cast<double>(shares[c]) * std::log(std::clamp(static_cast<double>(probabilities[c]), 1e-7, 1 - 1e-7));
  return loss;
}

int run(const Options& o, const Console& console) {
  const RunOptions options = o.run.resolve(console);
  const Model model = Model::from_file(o.model);
  const io::Preprocess p = resolve_preprocess(model.graph(), o.preprocess, console);
  const auto known_labels = resolve_labels(model.graph(), o.preprocess, 0);
  const Data opened = open_data(o, model.graph(), p, known_labels);
  const auto& data = opened.set;
  say_notes(*data, o.data, p, console);
  const bool values = opened.loss.targets == io::Targets::kValues && !opened.has_shares(), binary = opened.loss.kind == "binary";
  if (!opened.loss.why.empty()) console.detail(fmt::format("--loss auto: {} ({})", loss_word(opened.loss.kind), opened.loss.why));
  Classifier classifier(model, options, batch_shape(model.graph(), p, 1), values ? OutputType::kValues : OutputType::kProbabilities, "",
                        opened.loss.kind);
  const bool one_score = !values && binary && classifier.classes() == 1;
  if (one_score) classifier.tell_two_apart();
  const auto labels = resolve_labels(model.graph(), o.preprocess, one_score && known_labels.size() == 1 ? 1 : classifier.classes());
  if (data->sample_size() != classifier.sample_size())
    throw InvalidData(fmt::format("a sample has {} values, the network takes {}", data->sample_size(), classifier.sample_size()));
  if (opened.has_shares() && data->value_count() != classifier.classes())
    throw InvalidData(
        fmt::format("{} has shares of {} classes, the network has {} outputs", quote_whole(o.data), data->value_count(), classifier.classes()));
  if (values) {
    say_unused_outputs(model.graph(), console);
    describe_run(classifier, o.run, options, o.batch, console);
    evaluate_values(o, model, classifier, opened, labels, console);
    return 0;
  }
  const auto map = data->class_names().empty() ? std::vector<std::int64_t>() : map_classes(data->class_names(), labels, classifier.classes());
  say_unused_outputs(model.graph(), console);
  describe_run(classifier, o.run, options, o.batch, console);
  Metrics metrics(classifier.classes());
  const std::int64_t failed = measure(
      o, classifier, *data, console,
      [&](const Classifier::Item& item) {
        std::int64_t label = class_in_set(opened, item.index);
        if (!map.empty() && label >= 0) label = map[static_cast<std::size_t>(label)];
        if (label < 0 || label >= classifier.classes()) {
          throw InvalidData(
              fmt::format("{} has label {}, the network has {} outputs", quote_whole(data->name(item.index)), label, classifier.classes()));
        }
        if (opened.has_shares())
          metrics.add(label, item.scores, loss_of_shares(*data, item.index, item.scores));
        else if (binary)
          metrics.add(label, item.scores, loss_of_class(label, item.scores));
        else
          metrics.add(label, item.scores);
      },
      [&] { return fmt::format("top1 {:.4f}", metrics.top1()); });
  if (metrics.without_prediction() > 0)
    console.warn(
        fmt::format("the network's answer to {} of {} samples is NaN: they count as wrong", metrics.without_prediction(), metrics.samples()));
  print(o.json ? as_json(metrics, labels, classifier.classes(), failed) : as_text(metrics, labels, classifier.classes()));
  return 0;
}

}  // namespace

Command evaluate_command() {
  auto o = std::make_shared<Options>();
  return {
      .name = "evaluate",
      .summary =
          "Measures a model on a labelled set: loss, top-1, top-5, a table of the classes, the confusion matrix, AUC and F1; accuracy, F1 and AUC of "
          "each label where several are true at once; mean absolute and squared errors of numbers.",
      .example = "tandem evaluate model.onnx photos/val --devices cpu:2\ntandem evaluate model.onnx test.csv --preprocess torch --json",
      .declare =
          [o](OptionSet& s) {
            s.positional("MODEL", o->model, "an .onnx file");
            s.positional("DATA", o->data, "class folders, a list with labels, idx(.gz), .npy, .npz or .h5");
            declare_batch(s, o->batch);
            declare_loss(s, o->loss, "auto: what the model was trained with, else what fits its end and the targets");
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
