// From an imported graph to what one shard computes in a training step: forward pass in its training form, loss, gradients.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/infer.h"
#include "runtime/graph/recompute.h"

namespace tandem {

enum class BatchNormMode {
  kSync,    // statistics of the global batch
  kLocal,   // of the shard
  kFrozen,  // the running ones; nothing of the layer changes but what is trained of gamma and beta
};

// A batch normalisation whose running statistics are kept up to date: the constants `mean` and `variance` of the imported graph.
struct RunningStatistics {
  ValueId mean = kNoValue, variance = kNoValue;
  std::int64_t channels = 0;
  float momentum = 0;  // ONNX's and Keras' meaning: the share of the old value
};

struct TrainingOptions {
  std::string loss = "auto";  // see loss_of()
  BatchNormMode batch_norm = BatchNormMode::kSync;
  std::vector<ValueId> trained;  // constants of the imported graph
  Recompute recompute = Recompute::kCheap;
  std::vector<RunningStatistics> running;  // of the batch normalisations that train; ignored with kFrozen
};

// What an output of the shard's graph is.
struct TrainingOutput {
  enum class Kind {
    kLoss,        // float64 [1]: weighted sum over the shard's samples
    kPrediction,  // the imported graph's first output, for metrics
    kGradient,    // of TrainingOptions::trained[index], summed over the shard's samples
    kMoments,     // [3, C] of TrainingOptions::running[index]: the shard's with kLocal, the batch's with kSync
  } kind;
  std::size_t index = 0;
};

struct TrainingGraph {
  // Inputs: those of the imported graph; the parameters; target (as the loss takes it); weight [n]; `random` (int64 [3]) where has_random.
  Graph graph;
  std::vector<TrainingOutput> outputs;  // of graph.outputs
  std::size_t data_inputs = 0, parameters = 0;
  bool has_random = false;
  std::vector<std::size_t> without_gradient;  // of TrainingOptions::trained: what the loss does not depend on
};

// Batch normalisations of the graph by their running means, and the constants among TrainingOptions::trained that are theirs.
struct BatchNormLayer {
  std::size_t node = 0;  // index into Graph::nodes
  RunningStatistics statistics;
  ValueId gamma = kNoValue, beta = kNoValue;
};
std::vector<BatchNormLayer> batch_norm_layers(const Graph&);

// Which LossSum kind fits the graph's end, for "auto", "categorical", "binary", "mse" or "mae". A last Softmax or Sigmoid is taken off where the
// loss is fused with it; a loss on probabilities that cannot be fused says so in its kind.
struct LossPlan {
  std::string kind;
  ValueId prediction = kNoValue;  // what the loss takes
};
LossPlan loss_of(const Graph&, const std::string& wanted);

// `graph`: imported, not changed by passes; `shard`: shapes of its inputs for one shard. Throws Unsupported naming the node that cannot be trained
// through, InvalidModel when a name does not fit.
TrainingGraph make_training_graph(const Graph& graph, const InputBinding& shard, const TrainingOptions& options);

}  // namespace tandem
