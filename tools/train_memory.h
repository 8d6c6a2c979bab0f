// What `tandem train` takes at most, known before the first step.
#pragma once

#include <algorithm>
#include <cstddef>

#include "io/batch_source.h"
#include "parallel/trainer.h"
#include "tools/tandem.h"

namespace tandem::cli {

struct TrainMemory {
  std::size_t held = 0;                  // by the process before the trainer was made
  std::size_t step = 0, validation = 0;  // peaks beyond it. Validation takes the place of the activations of the last step
  std::size_t peak() const { return held + std::max(step, validation); }
};

// Bytes that a checkpoint holds of the network besides what is trained: frozen weights and statistics, where they have Keras names.
std::size_t saved_beside(const Graph& graph, const std::vector<TrainedParameter>& trained);

// Counts the samples that a source decodes ahead among what is held.
void hold_decoded(const io::BatchOptions& options, ShardOptions& shards);

// For batches of these options out of `samples` samples, and as many of `validation` samples (0: none) after each epoch. Runs nothing. Throws
// OutOfMemory where steps keep the limit and validation does not; where a step does not, the trainer says so itself.
TrainMemory predict_memory(Trainer& trainer, std::size_t held, const io::BatchOptions& options, std::int64_t samples, std::int64_t validation,
                           const RunOptions& run, TaskPool& pool);

}  // namespace tandem::cli
