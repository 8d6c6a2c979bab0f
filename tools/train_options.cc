#include "tools/train_options.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "io/file_digest.h"
#include "runtime/base/error.h"
#include "tools/targets.h"

namespace tandem::cli {
namespace {

using nlohmann::ordered_json;

// Options that may be changed on purpose when a run goes on, as a rate that was too large; resolved, by their names.
ordered_json numbers_of(const TrainOptions& o, const TrainSetup& setup) {
  const OptimizerOptions& optimizer = setup.options.optimizer;
  return {{"lr", setup.rate},
          {"lr-scale", o.training.rate_scales},
          {"warmup-epochs", o.warmup_epochs},
          {"min-lr", o.min_rate},
          {"momentum", optimizer.momentum},
          {"rho", optimizer.rho},
          {"beta1", optimizer.beta1},
          {"beta2", optimizer.beta2},
          {"epsilon", optimizer.epsilon},
          {"weight-decay", optimizer.weight_decay},
          {"l2", o.training.l2},
          {"clip-norm", optimizer.clip_norm},
          {"global-clip-norm", optimizer.global_clip_norm},
          {"clip-value", optimizer.clip_value}};
}

// Those that decide bits as well and stay the same; how many devices and threads there are is not among them.
ordered_json choices_of(const TrainOptions& o, const TrainSetup& setup) {
  return {{"val-split", o.val_split},
          {"batch-size", o.batch},
          {"seed", o.run.seed},
          {"precision", o.run.precision},
          {"no-passes", o.run.no_passes},
          {"split", o.run.split},
          {"optimizer", o.training.optimizer},
          {"optimizer-convention", o.training.convention},
          {"centered", setup.options.optimizer.centered},
          {"ema", o.training.ema},
          {"bn", o.training.bn},
          {"bn-variance", o.training.bn_variance},
          {"shards", o.training.shards},
          {"accumulate", o.training.accumulate},
          {"dropout", o.training.dropout},
          {"freeze", o.training.freeze},
          {"train", o.training.train},
          {"freeze-backbone", o.training.freeze_backbone},
          {"schedule", o.schedule},
          {"augment", o.augment},
          {"label-smoothing", o.label_smoothing},
          {"no-shuffle", o.no_shuffle},
          {"steps-per-epoch", o.loop.steps_per_epoch},
          {"repeat", o.loop.repeat},
          {"on-nan", o.on_nan},
          {"bad-files", o.bad_files},
          {"exif-orientation", o.exif},
          {"class-order", o.preprocess.class_order}};
}

}  // namespace

std::string settings_of(const TrainOptions& o, const TrainSetup& setup, const io::BatchOptions& batches, std::int64_t samples) {
  ordered_json all = choices_of(o, setup);
  all["model"] = io::file_sha256(o.model);
  all["samples"] = samples;
  all["classes"] = setup.outputs;
  all["chosen loss"] = setup.loss;
  all["new end"] = setup.new_end;
  all["class-weights"] = batches.class_weights;
  all["preprocess"] = batches.preprocess ? io::to_json(*batches.preprocess) : "";
  all["numbers"] = numbers_of(o, setup);
  // Other schedules run along the whole training: another length is another rate.
  if (o.schedule != "constant" && !o.schedule.starts_with("plateau")) all["numbers"]["epochs"] = o.loop.epochs;
  return all.dump();
}

TrainOptions resolved(TrainOptions o, const TrainSetup& setup, const io::Preprocess& p, const RunOptions& run, int threads) {
  const OptimizerOptions& optimizer = setup.options.optimizer;
  TrainingFlags& t = o.training;
  t.rate = setup.rate;
  t.momentum = optimizer.momentum;
  t.rho = optimizer.rho;
  t.beta1 = optimizer.beta1;
  t.beta2 = optimizer.beta2;
  t.epsilon = optimizer.epsilon;
  t.weight_decay = optimizer.weight_decay;
  // A number asks for a new head, and only auto takes another end for the old one: what would make another run stays.
  if (setup.new_head) t.classes = std::to_string(setup.outputs);
  if (setup.new_head || !setup.new_end) t.loss = loss_word(setup.loss);
  o.preprocess = flags_of(p, o.preprocess);
  o.run.devices = fmt::format("cpu:{}", run.devices.size());
  o.run.gpus.clear();
  o.run.threads = threads;
  if (o.workers == 0) o.workers = 2 * o.batch;
  if (o.loop.monitor.empty() && o.validates) o.loop.monitor = "val_loss";
  if (o.loop.monitor.empty()) o.loop.monitor = "loss";
  return o;
}

// The list is the command's own. The folder is where the file lies, no setting.
std::string args_toml(TrainOptions o, const TrainSetup& setup) {
  std::string text = "[train]\n";
  if (!setup.new_head) text += fmt::format("# classes: the model's own head, outputs {}\n", setup.outputs);
  if (!setup.new_head && setup.new_end) text += fmt::format("# loss: {}, with another last activation\n", loss_word(setup.loss));
  OptionSet all;
  declare_train_options(all, o);
  for (const OptionSpec& spec : all.specs()) {
    if (spec.key() == "output" || spec.key() == "resume") continue;
    if (const std::string value = spec.value(); !value.empty()) text += fmt::format("{} = {}\n", spec.key(), value);
  }
  return text;
}

void set_checkpoints(const std::string& text, LoopOptions& loop) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  const std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  if (digits == 0 || (unit != "" && unit != "steps" && unit != "epoch" && unit != "epochs"))
    throw UsageError(fmt::format("option --checkpoint-every: expected steps (500) or epochs (1epoch), found \"{}\"", text));
  const std::int64_t every = to_integer(text.substr(0, digits), 0, std::int64_t{1} << 40);
  if (every == 0) throw UsageError("option --checkpoint-every: expected 1 or more, found \"" + text + "\"");
  loop.checkpoint_steps = unit == "" || unit == "steps" ? every : 0;
  loop.checkpoint_epochs = loop.checkpoint_steps ? 0 : every;
}

void declare_train_options(OptionSet& s, TrainOptions& o) {
  s.positional("MODEL", o.model, "an .onnx file");
  s.positional("DATA", o.data, "class folders (root/class/*.jpg, or root/train and root/val), a list, HDF5, .npy, .npz or idx(.gz)");
  declare_batch(s, o.batch);
  s.integer("--epochs", "N", o.loop.epochs, 1, 1 << 30, "passes over the data");
  s.integer("--steps-per-epoch", "N", o.loop.steps_per_epoch, 0, std::int64_t{1} << 40, "batches of an epoch; 0: a pass over the data");
  s.flag("--repeat", o.loop.repeat, "epochs go on in the data where the one before ended");
  s.text("--output", "DIR", o.output, "where everything goes (default: runs/NAME-N)");
  s.text("--resume", "DIR", o.resume,
         "go on from the last checkpoint of this folder, on any number of devices; in the place of --output, the other options as before");
  s.text("--checkpoint-every", "STEPS|EPOCHS", o.checkpoint_every, "how often the state is saved: 500 (steps), 1epoch, 2epochs");
  s.text("--log", "FILE.jsonl", o.loop.log, "one JSON object a step");
  s.choice("--on-nan", {"stop", "skip"}, o.on_nan, "a loss or gradient that is NaN or infinite stops the run, or its batch is left out");
  s.choice("--strategy", {"mirrored", "collective", "parameter-server"}, o.strategy, "how devices work together; this version has mirrored only");
  s.group("Learning rate and stopping");
  s.text("--schedule", "KIND", o.schedule, "constant, cosine, step, exponential, polynomial or plateau, with values as in step:every=30,factor=0.1");
  s.number("--warmup-epochs", "N", o.warmup_epochs, 0, 1e9, "epochs in which the rate rises from 0");
  s.number("--min-lr", "X", o.min_rate, 0, 1e30, "the rate falls no further");
  s.integer("--early-stopping", "N", o.loop.early_stopping, 0, 1 << 30, "stop after N epochs without a better monitored value; 0: never");
  s.text("--monitor", "NAME", o.loop.monitor,
         "loss, accuracy, mae, mse, or one of them with val_ before it (default: val_loss, or loss where nothing is validated)");
  s.flag("--save-best", o.loop.save_best, "keep best.h5, the weights with the best monitored value");
  s.group("Data");
  s.text("--val-data", "DIR", o.val_data, "what is validated on after each epoch");
  s.number("--val-split", "F", o.val_split, 0, 0.99, "this share of each class (0.1: a tenth), chosen by the seed, is for validation");
  s.flag("--no-shuffle", o.no_shuffle, "take the samples in their order");
  s.text("--augment", "LIST", o.augment, "flip, crop, resized-crop, rotate, color, hue, erase, mixup, cutmix ... each with =VALUE where wanted");
  s.number("--label-smoothing", "X", o.label_smoothing, 0, 1, "share of each target that goes to all classes alike");
  s.text("--class-weights", "FILE|balanced", o.class_weights, "JSON: weight of each class; balanced: by how rare it is");
  s.integer("--workers", "N", o.workers, 0, 4096, "images decoded ahead; 0: two batches");
  s.choice("--bad-files", {"stop", "skip"}, o.bad_files, "what a damaged file does");
  s.flag("--exif-orientation", o.exif, "turn images as their EXIF tag says (Pillow and Keras do not)");
  declare_training_flags(s, o.training);
  declare_preprocess_flags(s, o.preprocess);
  declare_run_flags(s, o.run);
}

}  // namespace tandem::cli
