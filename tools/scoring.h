// Loss and metrics of predictions, sample by sample, as training and validation report them: accuracy of classes, mean absolute and squared error of
// numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/batch_source.h"
#include "runtime/cpu/task_pool.h"
#include "runtime/graph/network_end.h"
#include "tools/tandem.h"

namespace tandem {
struct MemoryPrediction;
}  // namespace tandem

namespace tandem::cli {

// Of one sample; those that its loss has.
struct Measures {
  std::optional<double> accuracy, mae, mse;
};

class Scoring {
 public:
  // `loss`: "categorical", "binary", "mse", "mae" on what the graph gives (scores behind its last activation).
  Scoring(const Graph& graph, std::string loss) : loss_(std::move(loss)), end_(network_end(graph).activation) {}
  // Keras' functions on probabilities, cut to [1e-7, 1 - 1e-7]; on logits where the network ends without an activation.
  double loss(std::span<const float> prediction, std::span<const float> target) const;
  // Accuracy: share of the outputs that are right: the largest score is the largest target's (categorical), on the same side of a half (binary, as
  // Keras' BinaryAccuracy). With mse and mae both errors, means over the outputs.
  bool has_accuracy() const { return loss_ == "categorical" || loss_ == "binary"; }
  Measures measure(std::span<const float> prediction, std::span<const float> target) const;
  // Scores above it say yes (binary).
  float half() const { return end_ == Activation::kNone ? 0.0f : 0.5f; }
  // The class of the largest score and its probability; of a single output class 1 above a half, else 0.
  struct Guess {
    std::int64_t output = 0;
    double probability = 0;
  };
  Guess guess(std::span<const float> prediction) const;

 private:
  using Activation = NetworkEnd::Activation;
  std::string loss_;
  Activation end_;
};

// Means over an epoch; of the loss weighted.
struct Score {
  double loss_sum = 0, right = 0, absolute = 0, squared = 0;
  std::int64_t samples = 0, scored = 0, measured = 0;  // scored: with an accuracy; measured: with errors
  double loss() const { return samples ? loss_sum / static_cast<double>(samples) : 0; }
  std::optional<double> accuracy() const { return mean(right, scored); }
  std::optional<double> mae() const { return mean(absolute, measured); }
  std::optional<double> mse() const { return mean(squared, measured); }
  void add(const Measures& m);

 private:
  static std::optional<double> mean(double sum, std::int64_t n) { return n ? std::optional(sum / static_cast<double>(n)) : std::nullopt; }
};

// A sample of a validation pass; the spans are valid during the call.
struct ScoredSample {
  std::int64_t index = 0;       // in the data set
  std::int64_t label = -1;      // an output of the network (0 or 1 with one output); -1: targets are values
  std::int64_t predicted = -1;  // likewise
  double probability = 0;       // of what is predicted
  double loss = 0;              // unweighted
  std::span<const float> prediction, target;
};

// What such a pass over batches of this input shape takes beyond what the process holds before (parallel/replica_group.h); runs nothing.
MemoryPrediction predict_validation(std::shared_ptr<const Graph> graph, const Shape& batch, const RunOptions& options, TaskPool& pool);

struct PassHooks {
  std::function<void(const ScoredSample&)> each;  // every sample in the order of the pass; may be empty
  std::function<bool()> goes_on;                  // asked behind every batch; may be empty
};
// One pass of `source` through the graph on `devices` replicas. Nothing where it was asked not to go on.
std::optional<Score> validate(std::shared_ptr<const Graph> graph, io::BatchSource& source, const Scoring& scoring, const RunOptions& options,
                              TaskPool& pool, const PassHooks& hooks = {});

}  // namespace tandem::cli
