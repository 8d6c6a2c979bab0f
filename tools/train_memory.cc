#include "tools/train_memory.h"

#include <fmt/format.h>

#include "models/weights_map.h"
#include "parallel/replica_group.h"
#include "runtime/base/error.h"
#include "tools/scoring.h"

namespace tandem::cli {
namespace {

std::size_t sample_bytes(const io::BatchOptions& o) { return static_cast<std::size_t>(elements(o.sample_shape)) * sizeof(float); }

Shape batch_of(const io::BatchOptions& o, std::int64_t samples) {
  Shape shape = o.sample_shape;
  shape.insert(shape.begin(), std::min(o.batch_size, samples));
  return shape;
}

}  // namespace

std::size_t saved_beside(const Graph& graph, const std::vector<TrainedParameter>& trained) {
  std::size_t all = 0, own = 0;
  try {
    for (const Layer& layer : models::keras_layers(graph)) {
      for (const LayerWeight& w : layer.weights) all += static_cast<std::size_t>(elements(w.shape)) * size_of(w.dtype);
    }
  } catch (const Unsupported&) {  // only what is trained is saved
  }
  for (const TrainedParameter& p : trained) own += static_cast<std::size_t>(elements(p.shape)) * sizeof(float);
  return all - std::min(all, own);
}

void hold_decoded(const io::BatchOptions& o, ShardOptions& shards) {
  if (o.ahead > 0)
    shards.held_bytes += static_cast<std::size_t>(o.ahead) * sample_bytes(o);
  else
    shards.held_per_sample += 2 * sample_bytes(o);
}

TrainMemory predict_memory(Trainer& trainer, std::size_t held, const io::BatchOptions& o, std::int64_t samples, std::int64_t validation,
                           const RunOptions& run, TaskPool& pool) {
  const TrainingPrediction step = trainer.predict({batch_of(o, samples)});
  TrainMemory memory{.held = held, .step = step.total()};
  if (validation == 0) return memory;
  const MemoryPrediction pass = predict_validation(trainer.group().graph(), batch_of(o, validation), run, pool);
  const std::int64_t queue = o.ahead > 0 ? o.ahead : 2 * o.batch_size;
  const std::size_t ahead = static_cast<std::size_t>(std::min(queue, validation)) * sample_bytes(o);
  memory.validation = step.kept() + pass.total() + ahead;
  const std::size_t limit = trainer.options().shards.memory_limit;
  if (limit > 0 && held + memory.step <= limit && held + memory.validation > limit) {
    throw OutOfMemory(
        fmt::format("validation needs {} ({} weights, {} activations, {} inputs and outputs, {} kept for training), the limit is {}; use "
                    "a larger limit, fewer threads or a smaller batch, or train without validation",
                    format_size(held + memory.validation), format_size(pass.weights + pass.constants), format_size(pass.arenas + pass.scratch),
                    format_size(pass.inputs_outputs + ahead), format_size(held + step.kept()), format_size(limit)),
        memory.validation, held, limit);
  }
  return memory;
}

}  // namespace tandem::cli
