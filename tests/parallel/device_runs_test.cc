// A few steps as MirroredStrategy (Keras 3 and tf_keras) and the old multi_gpu_model made them on two and four devices, in float32: weights, losses
// and the replicas' moving statistics.
#include <gtest/gtest.h>

#include <cmath>

#include "importer/importer.h"
#include "tests/support/recorded_runs.h"
#include "tests/support/training_runs.h"

namespace tandem::test {
namespace {

using nlohmann::json;
constexpr const char* kFile = "devices.h5";
constexpr std::int64_t kBatch = 8, kSamples = 37;
constexpr int kSteps = 5;  // 8, 8, 8, 8, 5

// Ten times what the same network strays in float32 in twelve steps of the same optimizer, as Keras' own runs say.
double tolerance(const RecordedRun& run) {
  return 10 *
         RecordedRun(run.settings()["optimizer"] == "adam" ? "a_adam_sparse.h5" : "a_momentum_cce.h5").settings()["f32_minus_f64_max"].get<double>();
}

struct Replay {
  Replay(const RecordedRun& run, int shards, BatchNormMode mode, SplitRule split, bool unbiased)
      : graph(import_file(training_data("net_a_softmax.onnx"))),
        pool(2),
        trainer(std::make_shared<const Graph>(graph), options(run, shards, mode, split, unbiased), pool, cpu),
        rate(run.settings()["learning_rate"].get<float>()) {
    const io::H5Node root = io::H5File(training_data(kFile)).root();
    images = channels_first(root.need("x").read());
    targets = root.need("y").read();
  }

  TrainerOptions options(const RecordedRun& run, int shards, BatchNormMode mode, SplitRule split, bool unbiased) const {
    Trainable all = everything_trained(graph);
    TrainerOptions o;
    o.training = all.training;
    o.parameters = all.parameters;
    o.training.loss = "categorical";
    o.training.batch_norm = mode;
    o.optimizer = default_optimizer(run.settings()["optimizer"] == "adam" ? "adam" : "momentum", OptimizerConvention::kKeras);
    o.shards.shards = shards;
    o.shards.split = split;
    o.unbiased_variance = unbiased;
    return o;
  }

  static std::int64_t size(int step) { return std::min(kBatch, kSamples - step * kBatch); }

  StepReport step(int at, const std::vector<float>& weights) {
    const std::int64_t first = at * kBatch, count = size(at);
    return trainer.step({.inputs = {rows(images, first, count)},
                         .target = rows(targets, first, count),
                         .weight = Tensor::of<float>({count}, std::span<const float>(weights))},
                        rate);
  }

  // dw1/bias stands before a batch norm: its gradient is nothing but rounding.
  std::map<std::string, Tensor> weights() const {
    auto all = keras_arrays(graph, trainer.state().weights);
    all.erase("dw1/bias");
    return all;
  }

  Graph graph;
  TaskPool pool;
  const CpuInfo cpu = CpuInfo::detect();
  Trainer trainer;
  float rate;
  Tensor images, targets;
};

// bn_replicas/<array> [step, replica, channel]: the mean over the replicas.
std::vector<double> mean_of_replicas(const RecordedRun& run, const std::string& array, int step) {
  const Tensor all = run.node().need("bn_replicas/" + array).read();
  const auto values = all.to_doubles();
  const auto replicas = static_cast<std::size_t>(all.shape()[1]), channels = static_cast<std::size_t>(all.shape()[2]);
  std::vector<double> mean(channels, 0.0);
  for (std::size_t r = 0; r < replicas; ++r)
    for (std::size_t c = 0; c < channels; ++c)
      mean[c] += values[(static_cast<std::size_t>(step) * replicas + r) * channels + c] / static_cast<double>(replicas);
  return mean;
}

void expect_statistics(const RecordedRun& run, const Replay& replay, int step, double most) {
  const auto found = keras_arrays(replay.graph, replay.trainer.state().statistics);
  ASSERT_EQ(found.size(), 8u);
  for (const auto& [name, values] : found) {
    // With Adam dw1/bias wanders by rounding, and the mean of what stands behind it goes with it.
    if (name == "bn2/moving_mean" && run.settings()["optimizer"] == "adam") continue;
    const auto want = mean_of_replicas(run, name, step), got = values.to_doubles();
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t c = 0; c < got.size(); ++c) EXPECT_NEAR(got[c], want[c], most) << name << " channel " << c << " after step " << step + 1;
  }
}

class MirroredRun : public testing::TestWithParam<const char*> {};

// Equal shards until step 4. The last batch is 3 + 2 on two devices, and MirroredStrategy takes the mean of the two means there: the same with
// weights for the samples. On four devices one of them gets nothing, which ruins the recorded weights.
TEST_P(MirroredRun, IsReproducedByAsManyShards) {
  const RecordedRun run(kFile, std::string("mirrored_") + GetParam());
  const int replicas = run.settings()["replicas"];
  const bool synced = run.settings()["bn"] == "syncbn";
  Replay replay(run, replicas, synced ? BatchNormMode::kSync : BatchNormMode::kLocal, SplitRule::kBalanced,
                !synced && run.settings()["api"] == "tfk");
  const auto losses = run.numbers("losses");
  const double most = tolerance(run);
  double sum = 0;
  for (int s = 0; s < (replicas == 2 ? kSteps : kSteps - 1); ++s) {
    std::vector<float> weights(static_cast<std::size_t>(Replay::size(s)), 1.0f);
    if (s == kSteps - 1) weights = {5.0f / 6, 5.0f / 6, 5.0f / 6, 5.0f / 4, 5.0f / 4};
    sum += replay.step(s, weights).loss;
    if (s < kSteps - 1) {  // the program shows the mean since the epoch began
      EXPECT_NEAR(sum / (s + 1), losses[static_cast<std::size_t>(s)], 1e-6) << "after step " << s + 1;
      expect_statistics(run, replay, s, most);
    }
    if (s == 0) expect_arrays(run, "step1", replay.weights(), most);
  }
  if (replicas == 2) expect_arrays(run, "final", replay.weights(), most);
}

INSTANTIATE_TEST_SUITE_P(NetA, MirroredRun,
                         testing::Values("k3_momentum_plain_x2", "k3_momentum_plain_x4", "k3_adam_plain_x2", "tfk_momentum_plain_x2",
                                         "tfk_momentum_plain_x4", "tfk_adam_plain_x2", "k3_momentum_syncbn_x2", "k3_momentum_syncbn_x4",
                                         "tfk_momentum_syncbn_x2"),
                         [](const auto& i) { return std::string(i.param); });

class MultiGpuRun : public testing::TestWithParam<const char*> {};

// Shares of floor(B / N), the rest goes to the last; loss and gradient of the whole batch. Its moving statistics follow no rule worth having (N
// deltas from the old value, n / (n - 1) twice). Keras 2.2.4's race with its gradients, so that two of its runs differ: on two devices from step 3
// on, on four from step 1 on (tf.keras 1.15 stands for it there).
TEST_P(MultiGpuRun, IsReproducedByTheSplitOfKeras) {
  const std::string name = GetParam();
  const RecordedRun run(kFile, "multi_gpu_model_" + name);
  Replay replay(run, run.settings()["gpus"], BatchNormMode::kLocal, SplitRule::kKeras, false);
  const auto losses = run.numbers("losses");
  const double most = tolerance(run);
  const bool drifts = name.find("2_2_4") != std::string::npos;
  for (int s = 0; s < (drifts ? 2 : kSteps); ++s) {
    const StepReport report = replay.step(s, std::vector<float>(static_cast<std::size_t>(Replay::size(s)), 1.0f));
    EXPECT_NEAR(report.loss, losses[static_cast<std::size_t>(s)], 1e-5) << "loss of step " << s + 1;
    if (s == 0) expect_arrays(run, "step1", replay.weights(), most);
  }
  if (!drifts) expect_arrays(run, "final", replay.weights(), most);
}

INSTANTIATE_TEST_SUITE_P(NetA, MultiGpuRun,
                         testing::Values("keras-2_2_4_x2", "keras-2_3_1_x1", "keras-2_3_1_x2", "tfkeras-1_15_x1", "tfkeras-1_15_x4"),
                         [](const auto& i) {
                           std::string name = i.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tandem::test
