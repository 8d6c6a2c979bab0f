// `tandem train`: fine-tunes a network on a labelled set.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <sstream>

#include "importer/importer.h"
#include "io/batch_source.h"
#include "io/class_weights.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"
#include "tools/command.h"
#include "tools/data_notes.h"
#include "tools/signals.h"
#include "tools/train_batch_norm.h"
#include "tools/train_data.h"
#include "tools/train_memory.h"
#include "tools/train_options.h"
#include "tools/train_report.h"

namespace tandem::cli {
namespace {

namespace fs = std::filesystem;

// Options that are about classes where there are none.
void check_for_numbers(const TrainOptions& o, const TrainSetup& setup) {
  if (!o.class_weights.empty()) throw UsageError("option --class-weights: the targets are numbers, expected classes");
  if (o.label_smoothing > 0 && is_regression(setup.loss)) throw UsageError("option --label-smoothing: the targets are numbers, expected classes");
}

std::vector<float> class_weights(const std::string& text, const io::Dataset& data, const DataClasses& classes, const io::BatchOptions& batches) {
  if (text.empty()) return {};
  if (text == "balanced") return io::balanced_class_weights(data, batches);
  return io::read_class_weights(text, classes.names, batches.outputs == 1 ? 2 : batches.outputs);
}

io::BatchOptions batch_options(const TrainOptions& o, const TrainSetup& setup, const io::Preprocess& p, const Shape& input) {
  io::BatchOptions b;
  b.batch_size = o.batch;
  b.seed = static_cast<std::uint64_t>(o.run.seed);
  b.shuffle = !o.no_shuffle;
  b.ahead = static_cast<int>(o.workers);
  b.skip_damaged = o.bad_files == "skip";
  b.sample_shape.assign(input.begin() + 1, input.end());
  b.outputs = setup.outputs;
  b.label_smoothing = static_cast<float>(o.label_smoothing);
  b.apart = setup.loss == "binary";
  if (!o.augment.empty()) b.augment = io::parse_augmentation(o.augment);
  b.preprocess = p;
  return b;
}

// What the report says of the run beside its figures: model, data, and the lines of args.toml.
std::vector<std::pair<std::string, std::string>> report_settings(const TrainOptions& o, const std::string& args, const TrainSetup& setup,
                                                                 std::int64_t samples, std::int64_t for_validation) {
  std::vector<std::pair<std::string, std::string>> all = {
      {"model", o.model},
      {"data", fmt::format("{}: {} samples for training, {} for validation", o.data, samples, for_validation)},
      {"parameters trained", fmt::format("{} of {}", setup.options.parameters.size(), setup.options.parameters.size() + setup.frozen.size())}};
  std::istringstream lines(args);
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t at = line.find(" = "); at != std::string::npos) all.emplace_back(line.substr(0, at), line.substr(at + 3));
  }
  return all;
}

std::vector<std::string> names_of(const std::vector<DeviceId>& devices) {
  std::vector<std::string> names;
  for (const DeviceId& d : devices) names.push_back(name_of(d));
  return names;
}

void check_monitor(const std::string& name, bool validates, const Scoring& scoring) {
  if (name.empty()) return;
  const std::string plain = name.starts_with("val_") ? name.substr(4) : name;
  const bool known =
      plain == "loss" || (plain == "accuracy" && scoring.has_accuracy()) || ((plain == "mae" || plain == "mse") && !scoring.has_accuracy());
  if (!known || (plain != name && !validates)) throw UsageError(fmt::format("option --monitor: there is no \"{}\" in this run", name));
}

// One pass in order over the samples as they are.
io::BatchOptions for_validation(io::BatchOptions b, const std::vector<std::int64_t>& subset) {
  b.subset = subset;
  b.shuffle = false;
  b.label_smoothing = 0;
  b.augment = {};
  b.class_weights.clear();
  b.passes = 1;
  return b;
}

std::int64_t steps_of_epoch(const TrainOptions& o, const io::BatchSource& source) {
  return o.loop.steps_per_epoch > 0 ? o.loop.steps_per_epoch : source.batches();
}

// What of the loop's options follows from the others.
void complete(TrainOptions& o, const TrainSetup& setup, const io::BatchOptions& batches, const io::BatchSource& source) {
  const std::int64_t per_epoch = steps_of_epoch(o, source);
  o.loop.seed = static_cast<std::uint64_t>(o.run.seed);
  o.loop.stop_on_nan = o.on_nan == "stop";
  o.loop.averaged = o.training.ema > 0;
  o.loop.settings = settings_of(o, setup, batches, source.samples());
  o.loop.schedule = parse_schedule(o.schedule, {.rate = setup.rate,
                                                .min_rate = o.min_rate,
                                                .steps_per_epoch = std::max<std::int64_t>(1, per_epoch),
                                                .epochs = static_cast<double>(o.loop.epochs),
                                                .warmup_epochs = o.warmup_epochs,
                                                .higher_is_better = o.loop.monitor.ends_with("accuracy")});
}

void say_done(const TrainLoop& loop, const RunFolder& folder, const io::BatchSource& source, const io::BatchSource* validation,
              const Console& console) {
  const TrainReport::Use use = loop.use();
  std::string said = fmt::format("done: {} (steps {:.1f} s, waited for data {:.1f} % of it", folder.path(), use.seconds,
                                 100 * use.waited / std::max(use.seconds, 1e-9));
  if (loop.passed_over() > 0) said += fmt::format(", {} batches passed over", loop.passed_over());
  const std::size_t left_out = source.damaged().size() + (validation ? validation->damaged().size() : 0);
  if (left_out > 0) said += fmt::format(", {} files left out", left_out);
  console.info(said + ")");
}

// The loss of one class is the same whatever the weights are: such a run would end well and teach nothing.
void check_learnable(const TrainOptions& o, const DataClasses& classes, const TrainSetup& setup) {
  if (setup.outputs != 1 || classes.values) return;
  if (classes.count < 2) throw InvalidData(fmt::format("{} has one class only: there is nothing to tell apart", quote_whole(o.data)));
  if (setup.loss == "categorical")
    throw UsageError(
        "option --loss: the categorical cross entropy of one output is always 0, there is nothing to learn (binary_crossentropy tells two "
        "classes apart by one output)");
}

void check_accumulation(const TrainOptions& o, const io::BatchSource& source, const Console& console) {
  const std::int64_t per_epoch = steps_of_epoch(o, source);
  const std::int64_t wanted = o.training.accumulate;
  if (o.loop.epochs <= wanted / std::max<std::int64_t>(1, per_epoch) && wanted > o.loop.epochs * per_epoch)
    console.warn(fmt::format("--accumulate {} is more than the {} batches of the run: no weight moves", wanted, o.loop.epochs * per_epoch));
}

int run(TrainOptions& o, const Console& console) {
  if (o.strategy != "mirrored") throw UsageError(fmt::format("option --strategy: this version has mirrored only, found \"{}\"", o.strategy));
  if (!o.resume.empty() && !o.output.empty()) throw UsageError("--resume and --output contradict each other: a run goes on in its own folder");
  set_checkpoints(o.checkpoint_every, o.loop);
  const RunOptions options = o.run.resolve(console);
  FileRecord record;
  Graph model = import_file(o.model, {.record = &record});
  if (model.inputs.size() != 1) throw Unsupported(fmt::format("the network has {} inputs, expected one that takes the samples", model.inputs.size()));
  const io::Preprocess p = resolve_preprocess(model, o.preprocess, console);
  TrainData data = open_train_data(o, model, p);
  say_notes(*data.training, o.data, p, console);
  if (data.validation && data.validation != data.training) say_notes(*data.validation, o.val_data.empty() ? o.data : o.val_data, p, console);
  const bool goes_on = !o.resume.empty();
  if (goes_on) keep_class_names(data.classes, RunFolder::labels_of(o.resume), o.resume);
  const DataClasses& classes = data.classes;
  const auto seed = static_cast<std::uint64_t>(o.run.seed);
  model.metadata["tandem.preprocess"] = io::to_json(p);
  TrainSetup setup = make_setup(model, classes, o.training, seed, console);
  if (classes.values) check_for_numbers(o, setup);
  check_learnable(o, classes, setup);
  if (o.training.loss == "auto")
    console.info(fmt::format("--loss auto: {} ({})", loss_word(setup.loss),
                             setup.loss == data.loss.kind ? data.loss.why : "classes, the network gives one score"));
  const CpuInfo cpu = CpuInfo::detect();
  set_run_options(setup, o.training, options, cpu);
  setup.options.saves = true;
  setup.options.saved_beside = saved_beside(*setup.graph, setup.options.parameters);
  TaskPool pool(options.threads > 0 ? options.threads : cpu.default_threads());
  const auto submit = [&pool](std::function<void()> task) { pool.submit(std::move(task)); };
  io::BatchOptions batches = batch_options(o, setup, p, batch_shape(*setup.graph, p, 1));
  batches.subset = data.training_subset;
  batches.class_map = data.class_map;
  batches.shares = data.shares();
  batches.class_weights = class_weights(o.class_weights, *data.training, classes, batches);
  io::BatchSource source(data.training, batches, submit);
  std::unique_ptr<io::BatchSource> validation;
  if (data.validation) {
    validation = std::make_unique<io::BatchSource>(data.validation, for_validation(batches, data.validation_subset), submit);
  }
  hold_decoded(batches, setup.options.shards);
  Trainer trainer(setup.graph, setup.options, pool, cpu);
  // What has no gradient is named before anything is written.
  trainer.group().check_limit({batch_shape(*setup.graph, p, std::min(o.batch, source.samples()))});
  const TrainMemory memory =
      predict_memory(trainer, trainer.group().held_before(), batches, source.samples(), validation ? validation->samples() : 0, options, pool);
  const std::int64_t batch = std::min(o.batch, source.samples());
  warn_of_few_values(*setup.graph, setup.options, batch_shape(*setup.graph, p, batch), console);
  if (o.run.log_placement)
    log_placement(o.run, options, {.cut = true, .steps = steps_of(trainer.group().plan({batch_shape(*setup.graph, p, batch)}))}, console);
  for (const std::string& name : trainer.without_gradient()) console.warn(fmt::format("the loss does not depend on {}: it is not trained", name));
  const Scoring scoring(*setup.graph, setup.loss);
  check_monitor(o.loop.monitor, validation != nullptr, scoring);
  RunFolder folder(goes_on ? o.resume : o.output, fs::path(o.model).stem().string(), goes_on);
  complete(o, setup, batches, source);
  check_accumulation(o, source, console);
  o.validates = validation != nullptr;
  const std::string args = args_toml(resolved(o, setup, p, options, pool.threads()), setup);
  TrainReport report({.model = o.model,
                      .settings = report_settings(o, args, setup, source.samples(), validation ? validation->samples() : 0),
                      .labels = setup.labels,
                      .classes = classes.values ? 0 : std::max<std::int64_t>(2, setup.outputs),
                      .yes_above = classes.values && setup.loss == "binary" ? std::optional(scoring.half()) : std::nullopt,
                      .validation = data.validation,
                      .devices = names_of(options.devices),
                      .threads = pool.threads(),
                      .shards = std::min<std::int64_t>(setup.options.shards.shards, batch),
                      .memory = memory,
                      .step = trainer.predict({batch_shape(*setup.graph, p, batch)})});
  TrainLoop loop(trainer, source, validation.get(), scoring, folder, report, options, pool, o.loop, console);
  if (goes_on) loop.resume(folder.restore(trainer, o.loop.settings, console));
  folder.write_text("args.toml", args);
  folder.write_labels(setup.labels);
  console.info(fmt::format("{} samples{}, {} of {} parameters trained, loss {}, predicted peak {}, output {}", source.samples(),
                           validation ? fmt::format(", {} for validation", validation->samples()) : "", setup.options.parameters.size(),
                           setup.options.parameters.size() + setup.frozen.size(), setup.loss, format_size(memory.peak()), folder.path()));
  const SignalWatch signals;
  const bool finished = loop.run([&signals] {
    if (signals.stop_signal() != 0) return Wish::kStop;
    return signals.take_save() ? Wish::kSave : Wish::kGoOn;
  });
  if (!finished) {
    console.info(fmt::format("stopped and saved; --resume {} goes on", folder.path()));
    return signals.stop_signal() == SIGINT ? 130 : 143;
  }
  const Graph trained = trainer.trained(o.loop.averaged);
  folder.write_model(trained, record);
  folder.write_weights(trained, "weights.h5", console);
  say_done(loop, folder, source, validation.get(), console);
  return 0;
}

}  // namespace

Command train_command() {
  auto o = std::make_shared<TrainOptions>();
  return {.name = "train",
          .summary = "Fine-tunes a network on a labelled set, on one or many devices, with the same result on any number of them.",
          .example =
              "tandem train model.onnx photos --epochs 5 --lr 0.0005 --devices cpu:2\n"
              "tandem train model.onnx photos --freeze-backbone --augment flip,crop --val-split 0.1 --output runs/head\n"
              "tandem train model.onnx photos --epochs 5 --lr 0.0005 --resume runs/model-1",
          .declare = [o](OptionSet& s) { declare_train_options(s, *o); },
          .run = [o](const Console& console) { return run(*o, console); },
          .subcommands = {}};
}

}  // namespace tandem::cli
