// `tandem predict`: a folder, list or glob of images to a table of the best classes.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>

#include "importer/importer.h"
#include "io/file_digest.h"
#include "io/image.h"
#include "io/listing.h"
#include "io/results.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"
#include "runtime/base/safe_file.h"
#include "runtime/base/sha256.h"
#include "tools/classifier.h"
#include "tools/command.h"
#include "tools/image_run.h"
#include "tools/options.h"
#include "tools/predict_report.h"
#include "tools/preprocess_flags.h"
#include "tools/targets.h"

namespace tandem::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string model, input, out, report, output_type, layer;  // output_type: empty, not given
  std::int64_t top_k = 0, batch = 32, workers = 0;            // top_k: 0, not given
  bool recursive = false, go_on = false, strict = false, exif = false;
  PreprocessFlags preprocess;
  RunFlags run;
};

// What decides a row's bytes: the network, its weights, and the options that change numbers. Devices, threads and workers do not, nor does the
// batch where images are independent.
std::vector<std::pair<std::string, std::string>> settings(const Options& o, const std::vector<std::string>& data_files, const io::Preprocess& p,
                                                          const std::vector<std::string>& labels, bool independent) {
  Sha256 names;
  names.update(io::labels_json(labels));
  std::vector<std::pair<std::string, std::string>> all = {{"model", io::file_sha256(o.model)}};
  for (const std::string& file : data_files) all.emplace_back("data", io::file_sha256(file));
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, std::string>>{{"layer", o.layer},
                                                                  {"precision", o.run.precision},
                                                                  {"passes", o.run.no_passes ? "no" : "yes"},
                                                                  {"exif-orientation", o.exif ? "yes" : "no"},
                                                                  {"preprocessing", io::to_json(p)},
                                                                  {"labels", names.hex()},
                                                                  {"batch", independent ? "any" : std::to_string(o.batch)}})
    all.emplace_back(name, value);
  return all;
}

std::string label_of(const std::vector<std::string>& labels, std::size_t i) { return i < labels.size() ? labels[i] : std::to_string(i); }

// Indices of the k largest, ties by index; what is NaN comes last.
std::vector<std::size_t> best(std::span<const float> scores, std::size_t k) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rank = [&](std::size_t i) { return std::isnan(scores[i]) ? -std::numeric_limits<float>::infinity() : scores[i]; };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(), [&](std::size_t a, std::size_t b) {
    const float x = rank(a), y = rank(b);
    return x != y ? x > y : a < b;
  });
  order.resize(k);
  return order;
}

// An error and its contexts in one field.
std::string one_line(const std::string& error) {
  std::string line;
  for (const char c : error) {
    if (c == '\n')
      line += ';';
    else if (c != ' ' || line.empty() || line.back() != ' ')
      line += c;
  }
  return line;
}

// Gives the label and the value that come first.
std::pair<std::string, float> write_row(io::ResultWriter& writer, const std::string& path, std::span<const float> scores, std::size_t k,
                                        const std::vector<std::string>& labels) {
  if (k == 0) {
    writer.row(path, {}, scores);
    return {"", scores.empty() ? 0.0f : scores[0]};
  }
  std::vector<std::string> names;
  std::vector<float> values;
  for (const std::size_t i : best(scores, k)) {
    names.push_back(label_of(labels, i));
    values.push_back(scores[i]);
  }
  writer.row(path, names, values);
  return {names[0], values[0]};
}

// What --output-type and --layer ask for: scores of classes, or every value of a layer. Throws UsageError for options that contradict each other.
OutputType output_type(const Options& o, const std::string& loss) {
  if (!o.layer.empty() && !o.output_type.empty() && o.output_type != "features")
    throw UsageError(fmt::format("--layer writes the values of a layer, --output-type {} scores of classes: give one of them", o.output_type));
  OutputType type = o.layer.empty() ? output_type_of(o.output_type) : OutputType::kFeatures;
  const bool numbers = is_regression(loss) && (o.output_type.empty() || o.output_type == "prob") && o.layer.empty();
  if (numbers && o.output_type == "prob")
    throw UsageError(fmt::format("option --output-type: the network was trained for numbers (loss {}), it gives no probabilities", loss));
  if (numbers) type = OutputType::kValues;
  if (type != OutputType::kFeatures && type != OutputType::kValues) return type;
  for (const auto& [option, given] : {std::pair{"--topk", o.top_k > 0}, std::pair{"--labels", !o.preprocess.labels.empty()}}) {
    if (given)
      throw UsageError(numbers ? fmt::format("{} is about classes, the network was trained for numbers (loss {})", option, loss)
                               : fmt::format("{} is about classes, {} writes all values of a layer: give one of them", option,
                                             o.layer.empty() ? "--output-type features" : "--layer"));
  }
  return type;
}

int run(const Options& o, const Console& console) {
  const RunOptions options = o.run.resolve(console);
  if (!o.report.empty() && !o.report.ends_with(".html"))
    throw UsageError(fmt::format("--report: expected a name ending in .html, found {}", quote_whole(o.report)));
  FileRecord record;
  ImportOptions import;
  import.record = &record;
  const Model model(std::make_shared<const Graph>(import_file(o.model, import)));
  const std::string loss = recorded_loss(model.graph());
  const OutputType type = output_type(o, loss);
  const bool plain = type == OutputType::kFeatures || type == OutputType::kValues;
  const io::Preprocess p = resolve_preprocess(model.graph(), o.preprocess, console);
  const io::Listing inputs = io::list_inputs(o.input, o.recursive);
  Classifier classifier(model, options, batch_shape(model.graph(), p, 1), type, o.layer, loss);
  if (!plain && classifier.classes() == 1 && resolve_labels(model.graph(), o.preprocess, 0).size() == 2) classifier.tell_two_apart();
  if (o.layer.empty()) say_unused_outputs(model.graph(), console);
  const bool independent = describe_run(classifier, o.run, options, o.batch, console);
  if (o.go_on && !independent)
    throw UsageError("--continue: images of one batch may influence each other in this network, so a part of a run cannot be kept; start anew");
  const auto labels = plain ? std::vector<std::string>() : resolve_labels(model.graph(), o.preprocess, classifier.classes());
  const std::size_t k = plain ? 0 : static_cast<std::size_t>(std::min(std::max<std::int64_t>(o.top_k, 1), classifier.classes()));
  io::ResultOptions result{.file = o.out,
                           .top_k = static_cast<int>(k),
                           .values = classifier.classes(),
                           .value = type == OutputType::kValues   ? "value"
                                    : plain                       ? "feature"
                                    : type == OutputType::kLogits ? "logit"
                                                                  : "prob",
                           .settings = settings(o, record.data_files, p, labels, independent),
                           .go_on = o.go_on,
                           .kept_row = nullptr,
                           .kept_failure = nullptr};
  std::optional<SafeFile> report_file;  // opened now: a folder that cannot be written to is said before the work
  if (!o.report.empty()) report_file.emplace(o.report);
  PredictReport report(inputs.paths.size());
  if (!o.report.empty()) {
    result.kept_row = [&](std::size_t i, const std::string& label, float value) { report.row(i, label, value); };
    result.kept_failure = [&](std::size_t i, const std::string& error) { report.failure(i, error); };
  }
  io::ResultWriter writer(result, inputs.paths);
  const auto total = static_cast<std::int64_t>(inputs.paths.size()), first = static_cast<std::int64_t>(writer.done());
  if (first > 0) console.info(fmt::format("going on after {} of {} files", first, total));
  const auto start = Clock::now();
  const io::DecodeOptions decode{.exif_orientation = o.exif, .limits = {}};
  std::int64_t shown = first, not_numbers = 0;
  classifier.for_each(
      first, total, o.batch, static_cast<int>(o.workers),
      [&](std::int64_t i, std::span<float> out) { io::apply(p, io::load_image(inputs.full(static_cast<std::size_t>(i)), decode), out); },
      [&](const Classifier::Item& item) {
        const auto input = static_cast<std::size_t>(item.index);
        const std::string& path = inputs.paths[input];
        if (item.error.empty()) {
          const auto [label, value] = write_row(writer, path, item.scores, k, labels);
          report.row(input, label, value);
          not_numbers += std::any_of(item.scores.begin(), item.scores.end(), [](float v) { return std::isnan(v); });
        } else {
          writer.failure(path, one_line(item.error));
          report.failure(input, one_line(item.error));
        }
        shown = item.index + 1;
      },
      [&] {
        writer.flush();
        console.detail(fmt::format("{} of {}", shown, total));
      });
  writer.finish();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (not_numbers > 0) console.warn(fmt::format("the network's answer to {} of {} images is or has NaN", not_numbers, total - first));
  const std::size_t failed = writer.failed();
  console.info(fmt::format("{} images, {} failed, {:.1f} img/s", total - static_cast<std::int64_t>(failed), failed,
                           static_cast<double>(total - first) / std::max(seconds, 1e-9)));
  if (report_file) {
    report_file->write(report.html(inputs,
                                   {.model = o.model,
                                    .input = o.input,
                                    .result = o.out,
                                    .value = result.value,
                                    .settings = {{"precision", o.run.precision},
                                                 {"devices", std::to_string(options.devices.size())},
                                                 {"threads", std::to_string(classifier.predictor().threads())},
                                                 {"batch", std::to_string(classifier.batch(o.batch))},
                                                 {"preprocessing", io::to_json(p)}},
                                    .seconds = seconds,
                                    .predicted_now = static_cast<std::size_t>(total - first)},
                                   decode));
    report_file->commit();
  }
  return failed > 0 && o.strict ? 4 : 0;
}

}  // namespace

Command predict_command() {
  auto o = std::make_shared<Options>();
  return {
      .name = "predict",
      .summary = "Predicts the classes of a folder, list or glob of images; a row for each file read, in order. Damaged files go to FILE.errors.csv.",
      .example =
          "tandem predict model.onnx photos --out photos.csv --topk 5 --devices cpu:2\ntandem predict model.onnx list.txt --out rows.jsonl "
          "--preprocess torch --continue",
      .declare =
          [o](OptionSet& s) {
            s.positional("MODEL", o->model, "an .onnx file");
            s.positional("INPUT", o->input, "a folder, a list (.txt, .csv), a glob or one file");
            s.text("--out", "FILE", o->out, "result: .csv, .jsonl or .h5").required = true;
            s.text("--report", "FILE.html", o->report, "also a page to look at: counts, classes, least certain images, errors, speed");
            s.integer("--topk", "K", o->top_k, 1, 100000, "classes in a row, most likely first").default_text = "1";
            s.choice("--output-type", {"prob", "logit", "features"}, o->output_type, "probabilities, logits, or what goes into the last Dense layer")
                .default_text = "prob";
            s.text("--layer", "NAME", o->layer, "all values of this node or value instead");
            declare_batch(s, o->batch);
            s.integer("--workers", "N", o->workers, 0, 4096, "images decoded ahead; 0: two batches");
            s.flag("--recursive", o->recursive, "folders below the folder as well");
            s.flag("--continue", o->go_on, "go on where a killed run stopped");
            s.flag("--strict", o->strict, "exit code 4 when a file could not be read");
            s.flag("--exif-orientation", o->exif, "turn images as their EXIF tag says (Pillow and Keras do not)");
            declare_preprocess_flags(s, o->preprocess);
            declare_run_flags(s, o->run);
          },
      .run = [o](const Console& console) { return run(*o, console); },
      .subcommands = {}};
}

}  // namespace tandem::cli
