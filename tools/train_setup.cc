#include "tools/train_setup.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <map>

#include "io/hdf5.h"
#include "io/preprocess.h"
#include "models/trainable.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"
#include "runtime/graph/network_end.h"
#include "tools/train_batch_norm.h"
#include "tools/trainable_report.h"

namespace tandem::cli {
namespace {

constexpr std::int64_t kShards = 8;
constexpr double kMost = std::numeric_limits<double>::max(), kMostScale = 1e6;

void optional_number(OptionSet& o, const char* name, std::optional<double>& value, double most, const char* help) {
  OptionSpec& spec = o.custom(
      name, "X", "", [&value, most](const std::string& text) { value = to_number(text, 0, most); },
      std::string(help) + " (default: the optimizer's)");
  spec.value = [&value] { return value ? fmt::format("{}", *value) : ""; };
}

std::string chosen_loss(const Graph& graph, const DataClasses& data, const std::string& wanted) {
  if (!data.loss.empty()) return data.loss;
  if (wanted != "auto") return loss_kind(wanted);
  return network_end(graph).activation == NetworkEnd::Activation::kSigmoid ? "binary" : "categorical";
}

struct NewHead {
  Tensor kernel, bias;
};

// `head/kernel` and `head/bias` of an .h5 file.
NewHead read_head(const std::string& file) {
  const io::H5File h5(file);
  NewHead head{h5.root().need("head/kernel").read(), {}};
  if (const auto bias = h5.root().find("head/bias")) head.bias = bias->read();
  return head;
}

void put_head(Graph& graph, const models::Head& head, std::int64_t classes, const TrainingFlags& flags, std::uint64_t seed, const Console& console) {
  NewHead made = flags.head.empty() ? NewHead{models::glorot_uniform(head.inputs, classes, seed), {}} : read_head(flags.head);
  if (made.kernel.rank() == 2 && made.kernel.shape()[1] != classes)
    throw UsageError(fmt::format("option --head: {} has {} classes, the data {}", flags.head, made.kernel.shape()[1], classes));
  models::replace_head(graph, head, made.kernel, made.bias);
  console.info(fmt::format("new head \"{}\": {} x {} ({})", head.layer, head.inputs, classes,
                           flags.head.empty() ? fmt::format("Glorot uniform, seed {}", seed) : flags.head));
}

// Keeps or replaces the head (true), and maps the data's classes to outputs.
bool fit_classes(Graph& graph, const DataClasses& data, const TrainingFlags& flags, std::uint64_t seed, const Console& console, TrainSetup& setup) {
  std::vector<std::string> stored;
  if (const auto at = graph.metadata.find("tandem.labels"); at != graph.metadata.end()) stored = io::parse_labels(at->second);
  setup.outputs = outputs_of(graph);
  const std::int64_t wanted = flags.classes == "auto" ? data.count : to_integer(flags.classes, 1, 1 << 24);
  if (wanted < data.count) throw UsageError(fmt::format("option --classes: {} are fewer than the data's {}", wanted, data.count));
  if (data.values && wanted != data.count)
    throw UsageError(fmt::format("option --classes: {}, the data has {} numbers for each sample", wanted, data.count));
  const bool binary = setup.outputs == 1 && data.count == 2 && flags.classes == "auto";
  const bool fits = setup.outputs == wanted || binary, same_names = !stored.empty() && stored == data.names;
  const bool keeps =
      flags.head.empty() && (data.values || flags.classes == "auto") ? fits && (same_names || data.names.empty() || stored.empty()) : false;
  if (keeps && !same_names && !data.values)
    console.info(fmt::format("the head is kept: the {} no class names, and there are as many classes as outputs (--classes {} makes a new one)",
                             stored.empty() ? "model has" : "data has", wanted));
  if (!keeps) {
    const auto head = models::find_head(graph);
    if (!head) throw Unsupported("the network's head (a last Gemm, MatMul or 1x1 Conv) was not found: it cannot take another number of classes");
    put_head(graph, *head, wanted, flags, seed, console);
    setup.outputs = wanted;
  }
  setup.labels = data.names.empty() ? (keeps ? stored : std::vector<std::string>()) : data.names;
  // Outputs that the data has no class for are called by their number.
  while (!setup.labels.empty() && std::ssize(setup.labels) < setup.outputs) setup.labels.push_back(std::to_string(setup.labels.size()));
  if (setup.labels.empty())
    graph.metadata.erase("tandem.labels");
  else
    graph.metadata["tandem.labels"] = io::labels_json(setup.labels);
  return !keeps;
}

// Targets that are numbers must lie where the network's last activation can reach them. A new head, or a network whose loss the program chose, takes
// another end where they do not (true).
bool fit_end(Graph& graph, const DataClasses& data, const std::string& loss, bool may_change, const Console& console) {
  using Activation = NetworkEnd::Activation;
  const Activation end = network_end(graph).activation;
  if (!data.values || end == Activation::kNone) return false;
  const bool softmax = end == Activation::kSoftmax, regression = is_regression(loss);
  const bool unit = data.values->least >= 0 && data.values->most <= 1;
  const bool reached = softmax ? data.values->sums_are_one : unit;
  if (reached || !(regression || loss == "binary")) return false;
  const char* name = softmax ? "softmax" : "sigmoid";
  const std::string why = softmax ? "outputs that add up to 1 cannot be the targets" : "outputs from 0 to 1 cannot be the targets";
  if (!may_change) {
    console.warn(fmt::format("the network ends in a {}: {}", name, why));
    return false;
  }
  models::replace_activation(graph, regression ? "Identity" : "Sigmoid");
  console.info(fmt::format("the network ended in a {}, now in {}: {}", name, regression ? "its plain scores" : "a sigmoid", why));
  return true;
}

OptimizerOptions optimizer_of(const TrainingFlags& flags) {
  OptimizerOptions o = default_optimizer(flags.optimizer, flags.convention == "torch" ? OptimizerConvention::kTorch : OptimizerConvention::kKeras);
  const auto take = [](const std::optional<double>& given, double& value) { value = given.value_or(value); };
  // What the optimizer has no use for is refused, unless it is the default that args.toml holds.
  const auto take_known = [&flags](const char* option, const std::optional<double>& given, double& value, std::initializer_list<const char*> users) {
    const bool known = std::find(users.begin(), users.end(), flags.optimizer) != users.end();
    if (!known && given && *given != value) throw UsageError(fmt::format("option {}: {} has no use for it", option, flags.optimizer));
    value = given.value_or(value);
  };
  take_known("--momentum", flags.momentum, o.momentum, {"sgd", "momentum", "nesterov", "rmsprop"});
  take_known("--rho", flags.rho, o.rho, {"rmsprop"});
  take_known("--beta1", flags.beta1, o.beta1, {"adam", "adamw"});
  take_known("--beta2", flags.beta2, o.beta2, {"adam", "adamw"});
  take_known("--epsilon", flags.epsilon, o.epsilon, {"rmsprop", "adam", "adamw", "adagrad"});
  if (flags.centered && flags.optimizer != "rmsprop") throw UsageError(fmt::format("option --centered: {} has no use for it", flags.optimizer));
  take(flags.weight_decay, o.weight_decay);
  o.centered = flags.centered;
  o.clip_norm = flags.clip_norm;
  o.global_clip_norm = flags.global_clip_norm;
  o.clip_value = flags.clip_value;
  o.ema = flags.ema;
  check(o);
  return o;
}

// Frozen by --freeze-backbone and --freeze, unless --train takes it back.
bool is_frozen(const std::string& name, bool in_head, const TrainingFlags& flags) {
  bool frozen = flags.freeze_backbone && !in_head;
  for (const std::string& p : flags.freeze) frozen = frozen || matches(p, name);
  for (const std::string& p : flags.train) frozen = frozen && !matches(p, name);
  return frozen;
}

// All where they are few, else from the beginning and the end: what stands between is called alike.
std::string some_names(const std::vector<models::TrainableArray>& arrays) {
  constexpr std::size_t kEach = 4;
  std::string text;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays.size() > 2 * kEach && i == kEach) {
      i = arrays.size() - kEach;
      text += ", ...";
    }
    text += (i == 0 ? "" : ", ") + quote(arrays[i].name);
  }
  return text;
}

void check_patterns(const std::vector<models::TrainableArray>& arrays, const std::vector<std::string>& patterns, const char* option) {
  for (const std::string& p : patterns) {
    if (std::none_of(arrays.begin(), arrays.end(), [&](const auto& a) { return matches(p, a.name); }))
      throw UsageError(fmt::format("option {}: no parameter is called \"{}\"; there are {}", option, p, some_names(arrays)));
  }
}

struct RateScale {
  std::string pattern;
  double factor = 1;
};

// "PATTERN=FACTOR".
std::vector<RateScale> rate_scales_of(const TrainingFlags& flags) {
  std::vector<RateScale> scales;
  for (const std::string& text : flags.rate_scales) {
    const std::size_t at = text.rfind('=');
    if (at == std::string::npos || at == 0)
      throw UsageError(fmt::format("option --lr-scale: expected PATTERN=FACTOR, as in 'block1_*=0.1', found \"{}\"", text));
    RateScale scale{text.substr(0, at), 1};
    try {
      scale.factor = to_number(text.substr(at + 1), 0, kMostScale);
    } catch (const UsageError& e) {
      throw UsageError(fmt::format("option --lr-scale: \"{}\": {}", text, e.message()));
    }
    if (scale.factor == 0)
      throw UsageError(fmt::format("option --lr-scale: the factor of \"{0}\" is 0: --freeze '{0}' keeps it as it is", scale.pattern));
    if (scale.factor < 1 / kMostScale)
      throw UsageError(
          fmt::format("option --lr-scale: the factor of \"{}\" must be {} at least, is {}", scale.pattern, 1 / kMostScale, scale.factor));
    scales.push_back(std::move(scale));
  }
  return scales;
}

// The last one that names it.
double rate_factor(const std::vector<RateScale>& scales, const std::string& name) {
  for (auto s = scales.rbegin(); s != scales.rend(); ++s) {
    if (matches(s->pattern, name)) return s->factor;
  }
  return 1;
}

void say_rate_factors(const std::vector<TrainedParameter>& parameters, const Console& console) {
  std::map<double, std::size_t> counts;
  for (const TrainedParameter& p : parameters) ++counts[p.rate_factor];
  std::string text;
  for (const auto& [factor, n] : counts) text += fmt::format("{}{} arrays x {}", text.empty() ? "" : ", ", n, factor);
  if (counts.size() > 1 || !counts.contains(1)) console.info("learning rate: " + text);
}

void warn_of_frozen(const models::Head* head, const std::vector<models::TrainableArray>& arrays, const std::vector<std::string>& frozen,
                    const std::vector<RateScale>& scales, bool new_head, const Console& console) {
  const auto is_frozen_name = [&](const std::string& name) { return std::find(frozen.begin(), frozen.end(), name) != frozen.end(); };
  for (const RateScale& s : scales) {
    const bool trains =
        std::any_of(arrays.begin(), arrays.end(), [&](const auto& a) { return matches(s.pattern, a.name) && !is_frozen_name(a.name); });
    if (!trains) console.warn(fmt::format("--lr-scale: everything that is called \"{}\" is frozen", s.pattern));
  }
  for (const models::TrainableArray& a : arrays) {
    if (new_head && head && a.value == head->kernel && is_frozen_name(a.name))
      console.warn(fmt::format("the new head {} is frozen: it stays as it was drawn", quote(a.name)));
  }
}

void choose_parameters(const Graph& graph, const TrainingFlags& flags, bool new_head, const Console& console, TrainSetup& setup) {
  const auto arrays = models::trainable_arrays(graph);
  const auto scales = rate_scales_of(flags);
  std::vector<std::string> scaled;
  for (const RateScale& s : scales) scaled.push_back(s.pattern);
  check_patterns(arrays, scaled, "--lr-scale");
  check_patterns(arrays, flags.freeze, "--freeze");
  check_patterns(arrays, flags.train, "--train");
  if (!flags.train.empty() && flags.freeze.empty() && !flags.freeze_backbone)
    throw UsageError("option --train: nothing is frozen that it could take back: --freeze '*' freezes everything else");
  const auto head = models::find_head(graph);
  const auto norms = batch_norm_layers(graph);
  std::vector<bool> norm_trains(norms.size(), false), norm_has_arrays(norms.size(), false);
  TrainingOptions& training = setup.options.training;
  for (const models::TrainableArray& a : arrays) {
    const bool in_head = head && (a.value == head->kernel || a.value == head->bias);
    const bool is_norm = a.batch_norm >= 0;
    const bool frozen = is_frozen(a.name, in_head, flags) || (is_norm && flags.bn == "frozen");
    if (is_norm) {
      norm_has_arrays[static_cast<std::size_t>(a.batch_norm)] = true;
      if (!frozen) norm_trains[static_cast<std::size_t>(a.batch_norm)] = true;
    }
    if (frozen) {
      setup.frozen.push_back(a.name);
      continue;
    }
    training.trained.push_back(a.value);
    setup.options.parameters.push_back(
        {.name = a.name, .shape = graph.value(a.value).shape, .rate_factor = rate_factor(scales, a.name), .l2 = a.is_kernel ? flags.l2 : 0});
  }
  if (training.trained.empty()) throw UsageError("everything is frozen: there is nothing to train");
  say_rate_factors(setup.options.parameters, console);
  warn_of_frozen(head ? &*head : nullptr, arrays, setup.frozen, scales, new_head && flags.head.empty(), console);
  // As in Keras: a layer whose arrays are all frozen keeps its statistics too.
  for (std::size_t n = 0; n < norms.size(); ++n) {
    const bool trains = norm_has_arrays[n] ? norm_trains[n] : !flags.freeze_backbone;
    if (trains && flags.bn != "frozen") training.running.push_back(norms[n].statistics);
  }
}

}  // namespace

std::int64_t outputs_of(const Graph& graph) {
  const auto head = models::find_head(graph);
  if (head) return head->classes;
  const auto shaped = inferred(graph, 2);
  if (!shaped) return 0;
  const Shape& shape = shaped->value(shaped->outputs[0]).shape;
  return shape.empty() ? 0 : elements(std::span(shape).subspan(1));
}

void set_run_options(TrainSetup& setup, TrainingFlags& flags, const RunOptions& options, const CpuInfo& cpu) {
  const auto devices = static_cast<std::int64_t>(options.devices.size());
  // Keras' shares are those of devices.
  if (flags.shards == 0) flags.shards = options.split == SplitRule::kKeras ? devices : kShards;
  setup.options.shards.shards = static_cast<int>(flags.shards);
  if (devices > flags.shards)
    throw UsageError(fmt::format("option --shards: {} are fewer than the {} devices", setup.options.shards.shards, options.devices.size()));
  setup.options.shards.plan = {.precision = options.precision, .passes = options.passes};
  setup.options.shards.split = options.split;
  setup.options.shards.devices = static_cast<int>(options.devices.size());
  setup.options.shards.memory_limit = options.memory.limit(cpu.memory_bytes);
}

bool matches(const std::string& pattern, const std::string& text) { return fnmatch(pattern.c_str(), text.c_str(), 0) == 0; }

void declare_training_flags(OptionSet& o, TrainingFlags& f) {
  o.group("Optimizer and loss");
  o.choice("--optimizer", {"sgd", "momentum", "nesterov", "rmsprop", "adam", "adamw", "adagrad"}, f.optimizer, "update rule");
  o.choice("--optimizer-convention", {"keras", "torch"}, f.convention, "whose formulas and defaults");
  optional_number(o, "--lr", f.rate, kMost, "learning rate; Keras': 0.01 for sgd, momentum and nesterov, else 0.001");
  optional_number(o, "--momentum", f.momentum, 1, "of sgd (0), momentum and nesterov (0.9), rmsprop (0)");
  optional_number(o, "--rho", f.rho, 1, "of rmsprop: share of the old mean square that stays");
  optional_number(o, "--beta1", f.beta1, 1, "of adam and adamw");
  optional_number(o, "--beta2", f.beta2, 1, "of adam and adamw");
  optional_number(o, "--epsilon", f.epsilon, kMost, "what keeps the division finite");
  optional_number(o, "--weight-decay", f.weight_decay, kMost, "share of the weights that goes with each step, times the rate");
  o.flag("--centered", f.centered, "rmsprop with the variance instead of the square");
  o.number("--l2", "X", f.l2, 0, kMost, "adds X times the sum of squares of the kernels to the loss");
  o.number("--clip-norm", "X", f.clip_norm, 0, kMost, "largest norm of each gradient array; 0: none; excludes the next two");
  o.number("--global-clip-norm", "X", f.global_clip_norm, 0, kMost, "largest norm of the whole gradient; 0: none");
  o.number("--clip-value", "X", f.clip_value, 0, kMost, "largest magnitude of a gradient's elements; 0: none");
  o.integer("--accumulate", "N", f.accumulate, 1, 1 << 20, "batches whose mean gradient makes one update");
  o.number("--ema", "DECAY", f.ema, 0, 1, "moving average of the weights, saved instead of them; 0: none");
  declare_loss(o, f.loss,
               "auto: classes and shares of classes take categorical_crossentropy, or binary where the network ends in a sigmoid; several zeros and "
               "ones for a sample binary; other numbers mse");
  o.group("What is trained");
  o.texts("--freeze", "PATTERN", f.freeze, "parameters (layer/weight) that stay as they are; *, ? and [abc] as in the shell");
  o.texts("--train", "PATTERN", f.train, "parameters that are trained although --freeze or --freeze-backbone names them");
  o.flag("--freeze-backbone", f.freeze_backbone, "only the head is trained");
  o.texts("--lr-scale", "PATTERN=FACTOR", f.rate_scales,
          "these parameters take the learning rate times FACTOR, as in 'block1_*=0.1'; of several that name one the last holds");
  OptionSpec& classes = o.custom(
      "--classes", "N|auto", f.classes,
      [&f](const std::string& text) {
        if (text != "auto") to_integer(text, 1, 1 << 24);
        f.classes = text;
      },
      "outputs of the head; auto: kept when the data's classes are the model's labels, else a new head");
  classes.value = [&f] { return toml_text(f.classes); };
  o.text("--head", "FILE.h5", f.head, "weights of the new head: head/kernel [inputs, classes], head/bias");
  o.number("--dropout", "P", f.dropout, 0, 0.999, "share of the head's inputs that is dropped; 0: none");
  o.choice("--bn", {"sync", "local", "frozen"}, f.bn,
           "batch norm takes the statistics of the whole batch (as Keras on one device), of each shard (as replicas), or the stored ones")
      .default_text = "sync; frozen where an exporter absorbed them";
  o.choice("--bn-variance", {"population", "unbiased"}, f.bn_variance, "what goes into the running variance (torch: unbiased)");
  o.integer("--shards", "K", f.shards, 1, 4096, "parts of a batch that are summed apart: the result depends on K, not on devices").default_text =
      "8; with --split keras one for each device";
}

TrainSetup make_setup(const Graph& model, const DataClasses& data, TrainingFlags& flags, std::uint64_t seed, const Console& console) {
  Graph graph = model;
  TrainSetup setup;
  for (const std::string& repair : repair_for_training(graph)) console.info("repaired: " + repair);
  setup.new_head = fit_classes(graph, data, flags, seed, console, setup);
  setup.loss = chosen_loss(graph, data, flags.loss);
  if (setup.loss == "categorical" && setup.outputs == 1 && flags.loss == "auto") setup.loss = "binary";
  if (setup.loss == "categorical" && setup.outputs == 1)
    throw UsageError("option --loss: categorical_crossentropy needs an output for each class, the network has one: binary_crossentropy takes it");
  setup.new_end = fit_end(graph, data, setup.loss, setup.new_head || flags.loss == "auto", console);
  record_loss(graph, setup.loss);
  if (flags.dropout > 0) {
    const auto head = models::find_head(graph);
    if (!head) throw Unsupported("option --dropout: the network's head (a last Gemm, MatMul or 1x1 Conv) was not found");
    models::add_dropout(graph, *head, flags.dropout);
  }
  choose_batch_norm(graph, flags.bn, flags.bn_variance, console);
  choose_parameters(graph, flags, setup.new_head, console, setup);
  setup.options.training.loss = setup.loss;
  setup.options.training.batch_norm = flags.bn == "local"                                              ? BatchNormMode::kLocal
                                      : flags.bn == "frozen" || setup.options.training.running.empty() ? BatchNormMode::kFrozen
                                                                                                       : BatchNormMode::kSync;
  setup.options.optimizer = optimizer_of(flags);
  setup.options.accumulate = static_cast<int>(flags.accumulate);
  setup.options.unbiased_variance = flags.bn_variance == "unbiased";
  setup.rate = flags.rate.value_or(default_rate(setup.options.optimizer.kind, setup.options.optimizer.convention));
  setup.graph = std::make_shared<const Graph>(std::move(graph));
  return setup;
}

}  // namespace tandem::cli
