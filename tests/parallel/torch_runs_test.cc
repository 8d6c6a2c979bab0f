// Twelve steps of training as PyTorch made them in float64, arrays under Keras' names and axes, within ten times what float32 strays in PyTorch
// itself.
#include <gtest/gtest.h>

#include "importer/importer.h"
#include "tests/support/recorded_runs.h"
#include "tests/support/training_runs.h"

namespace tandem::test {
namespace {

constexpr std::int64_t kBatch = 8, kSamples = 93, kClasses = 5;

OptimizerOptions torch_optimizer(const nlohmann::json& settings) {
  const std::string name = settings["optimizer"];
  const nlohmann::json& c = settings["optimizer_config"];  // as torch prints it: texts
  OptimizerOptions o = default_optimizer(name == "SGD" ? "sgd" : name == "AdamW" ? "adamw" : "rmsprop", OptimizerConvention::kTorch);
  const auto take = [&c](const char* key, double& value) {
    if (c.contains(key)) value = std::stod(c[key].get<std::string>());
  };
  take("momentum", o.momentum);
  take("alpha", o.rho);
  take("eps", o.epsilon);
  take("weight_decay", o.weight_decay);
  return o;
}

class TorchRun : public testing::TestWithParam<const char*> {};

TEST_P(TorchRun, IsReproduced) {
  const RecordedRun run(std::string("torch_") + GetParam() + ".h5");
  const auto& settings = run.settings();
  const Tensor images = channels_first(io::H5File(training_data("net_a_x.h5")).root().need("x").read());
  Tensor targets = RecordedRun("a_momentum_cce.h5").node().need("y").read();  // the same labels
  const float smoothing = settings["label_smoothing"];
  for (float& t : targets.as_mutable<float>()) t = t * (1 - smoothing) + smoothing / kClasses;

  const Graph graph = import_file(training_data("net_a_softmax.onnx"));
  Trainable all = everything_trained(graph);
  TrainerOptions options;
  options.training = all.training;
  options.parameters = all.parameters;
  options.training.loss = "categorical";
  options.optimizer = torch_optimizer(settings);
  options.unbiased_variance = true;
  options.shards.shards = 3;
  TaskPool pool(2);
  const CpuInfo cpu = CpuInfo::detect();
  Trainer trainer(std::make_shared<const Graph>(graph), options, pool, cpu);

  const auto losses = run.numbers("step_loss");
  double loss_strays = 0;
  for (const auto& d : settings["f32_minus_f64_loss"]) loss_strays = std::max(loss_strays, d.get<double>());
  const float rate = std::stof(settings["optimizer_config"]["lr"].get<std::string>());
  for (std::size_t s = 0; s < losses.size(); ++s) {
    const std::int64_t first = static_cast<std::int64_t>(s) * kBatch, count = std::min(kBatch, kSamples - first);
    Tensor weight(DType::kF32, {count});
    for (float& w : weight.as_mutable<float>()) w = 1;
    const StepReport report = trainer.step({.inputs = {rows(images, first, count)}, .target = rows(targets, first, count), .weight = weight}, rate);
    EXPECT_NEAR(report.loss, losses[s], 10 * loss_strays) << "loss of step " << s;
  }
  const double strays = settings["f32_minus_f64_max"];
  const auto state = trainer.state();
  expect_arrays(run, "final", keras_arrays(graph, state.weights), 10 * strays);
  expect_arrays(run, "final", keras_arrays(graph, state.statistics), 10 * strays);
  expect_arrays(run, "slots", keras_arrays(graph, state.slots), 10 * strays);
}

INSTANTIATE_TEST_SUITE_P(NetA, TorchRun, testing::Values("adamw_smoothing", "momentum", "rmsprop"),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace tandem::test
