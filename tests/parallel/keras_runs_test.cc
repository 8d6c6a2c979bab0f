// Twelve steps of training as Keras 3 made them in float64: losses, norms, rates, weights, slots and statistics, within ten times what float32 strays
// in Keras itself.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "importer/importer.h"
#include "io/hdf5.h"
#include "tests/support/training_runs.h"

namespace tandem::test {
namespace {

using nlohmann::json;
constexpr std::int64_t kBatch = 8, kSamples = 93;
constexpr int kSteps = 12;

std::string data(const std::string& name) { return TANDEM_SOURCE_DIR "/tests/data/training/" + name; }

// NHWC -> NCHW.
Tensor channels_first(const Tensor& x) {
  const Shape s = x.shape();
  Tensor out(DType::kF32, {s[0], s[3], s[1], s[2]});
  const auto from = x.as<float>();
  const auto to = out.as_mutable<float>();
  const std::int64_t pixels = s[1] * s[2];
  for (std::int64_t n = 0; n < s[0]; ++n)
    for (std::int64_t p = 0; p < pixels; ++p)
      for (std::int64_t c = 0; c < s[3]; ++c)
        to[static_cast<std::size_t>((n * s[3] + c) * pixels + p)] = from[static_cast<std::size_t>((n * pixels + p) * s[3] + c)];
  return out;
}

Tensor rows(const Tensor& t, std::int64_t first, std::int64_t count) {
  Shape shape = t.shape();
  const std::size_t row = t.bytes() / static_cast<std::size_t>(shape[0]);
  shape[0] = count;
  Tensor out(t.dtype(), shape);
  std::memcpy(out.mutable_data(), static_cast<const std::byte*>(t.data()) + static_cast<std::size_t>(first) * row,
              row * static_cast<std::size_t>(count));
  return out;
}

struct Recorded {
  explicit Recorded(const std::string& file) : h5(data(file)), settings(json::parse(*h5.root().text("settings"))) {}
  io::H5File h5;
  json settings;
  std::vector<double> numbers(const std::string& path) const { return h5.root().need(path).read().to_doubles(); }
};

Tensor dense_targets(const Recorded& run) {
  const Tensor y = run.h5.root().need("y").read();
  Tensor out(DType::kF32, {kSamples, 5});
  const auto values = y.to_doubles();
  const auto to = out.as_mutable<float>();
  const double smoothing = run.settings.value("smoothing", 0.0);
  for (std::size_t i = 0; i < to.size(); ++i) {
    const double one = y.rank() == 1 ? values[i / 5] == static_cast<double>(i % 5) : values[i];
    to[i] = static_cast<float>(one * (1 - smoothing) + smoothing / 5);
  }
  return out;
}

OptimizerOptions optimizer_of(const json& settings) {
  std::string name = settings["optimizer"];
  for (char& c : name) c = static_cast<char>(std::tolower(c));
  OptimizerOptions o = default_optimizer(name, OptimizerConvention::kKeras);
  const json& c = settings["optimizer_config"];
  o.momentum = c.value("momentum", 0.0);
  o.nesterov = c.value("nesterov", false);
  o.rho = c.value("rho", o.rho);
  o.beta1 = c.value("beta_1", o.beta1);
  o.beta2 = c.value("beta_2", o.beta2);
  o.epsilon = c.value("epsilon", o.epsilon);
  o.weight_decay = c.value("weight_decay", 0.0);
  o.clip_norm = c.value("clipnorm", 0.0);
  o.global_clip_norm = c.value("global_clipnorm", 0.0);
  return o;
}

std::string loss_of_run(const json& settings) {
  const std::string loss = settings["loss"];
  return loss == "mean_squared_error" ? "mse" : loss == "binary_crossentropy" ? "binary" : "categorical";
}

void expect_arrays(const Recorded& run, const std::string& group, const std::map<std::string, Tensor>& found, double tolerance) {
  std::size_t compared = 0;
  for (const auto& [name, values] : found) {
    if (run.settings["zero_gradient_weights"].contains(name.substr(name.find_first_of('/') + 1)) ||
        run.settings["zero_gradient_weights"].contains(name))
      continue;
    const auto node = run.h5.root().find(group + "/" + name);
    ASSERT_TRUE(node) << group << "/" << name;
    const auto want = node->read().to_doubles(), got = values.to_doubles();
    ASSERT_EQ(want.size(), got.size()) << name;
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance) << group << "/" << name << " element " << i;
    ++compared;
  }
  EXPECT_GE(compared, 7u) << group;
}

class KerasRun : public testing::TestWithParam<const char*> {};

TEST_P(KerasRun, IsReproduced) {
  const Recorded run(std::string("a_") + GetParam() + ".h5");
  const Tensor images = channels_first(io::H5File(data("net_a_x.h5")).root().need("x").read()), targets = dense_targets(run);
  Tensor weights(DType::kF32, {kSamples});
  for (float& w : weights.as_mutable<float>()) w = 1;
  if (const auto given = run.h5.root().find("sample_weight")) weights = given->read();

  const Graph graph = import_file(data(run.settings["onnx"]));
  Trainable all = everything_trained(graph);
  TrainerOptions options;
  options.training = all.training;
  options.parameters = all.parameters;
  options.optimizer = optimizer_of(run.settings);
  options.training.loss = loss_of_run(run.settings);
  options.accumulate = run.settings["optimizer_config"].value("gradient_accumulation_steps", 1);
  const bool frozen = run.settings.value("bn", "") == "frozen";
  if (frozen) {
    options.training.batch_norm = BatchNormMode::kFrozen;
    options.training.running.clear();
    for (std::size_t i = options.parameters.size(); i-- > 0;) {
      const std::string& name = options.parameters[i].name;
      if (name.find("/gamma") == std::string::npos && name.find("/beta") == std::string::npos) continue;
      options.parameters.erase(options.parameters.begin() + static_cast<std::ptrdiff_t>(i));
      options.training.trained.erase(options.training.trained.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  for (TrainedParameter& p : options.parameters) {
    if (p.name.find("kernel") != std::string::npos) p.l2 = run.settings.value("l2", 0.0);
  }
  options.shards.shards = 3;
  TaskPool pool(2);
  const CpuInfo cpu = CpuInfo::detect();
  Trainer trainer(std::make_shared<const Graph>(graph), options, pool, cpu);

  const auto losses = run.numbers("step_loss"), norms = run.numbers("step_grad_norm"), rates = run.numbers("step_learning_rate");
  const auto f32_norms = run.numbers("f32/step_grad_norm");
  double loss_strays = 0, norm_strays = 0;
  for (int s = 0; s < kSteps; ++s) {
    loss_strays = std::max(loss_strays, run.settings["f32_minus_f64_loss"][static_cast<std::size_t>(s)].get<double>());
    norm_strays = std::max(norm_strays, std::abs(f32_norms[static_cast<std::size_t>(s)] - norms[static_cast<std::size_t>(s)]));
  }
  const double strays = run.settings["f32_minus_f64_max"];
  for (int s = 0; s < kSteps; ++s) {
    const std::int64_t first = s * kBatch, count = std::min(kBatch, kSamples - first);
    const auto at = static_cast<std::size_t>(s);
    const StepReport report =
        trainer.step({.inputs = {rows(images, first, count)}, .target = rows(targets, first, count), .weight = rows(weights, first, count)},
                     static_cast<float>(rates[at]));
    EXPECT_NEAR(report.loss, losses[at], 10 * loss_strays) << "loss of step " << s;
    EXPECT_NEAR(report.gradient_norm, norms[at], 10 * norm_strays) << "gradient norm of step " << s;
    if (s == 0) expect_arrays(run, "step1", keras_arrays(graph, trainer.state().weights), 10 * strays);
  }
  const auto state = trainer.state();
  expect_arrays(run, "final", keras_arrays(graph, state.weights), 10 * strays);
  if (!frozen) expect_arrays(run, "final", keras_arrays(graph, state.statistics), 10 * strays);
  if (!state.slots.empty()) expect_arrays(run, "slots", keras_arrays(graph, state.slots), 10 * strays);
}

INSTANTIATE_TEST_SUITE_P(NetA, KerasRun,
                         testing::Values("accumulate3", "adagrad_cce", "adam_sparse", "adamw_smoothing", "bce_sigmoid", "bn_frozen", "class_weights",
                                         "clipnorm", "cosine_warmup", "global_clipnorm", "l2", "momentum_cce", "nesterov_cce", "rmsprop_cce",
                                         "rmsprop_momentum", "sgd_cce", "sgd_mse", "sgd_weight_decay"),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace tandem::test
