#include "tools/train_batch_norm.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/trainable.h"
#include "parallel/split.h"
#include "runtime/base/quote.h"
#include "runtime/graph/infer.h"

namespace tandem::cli {

void choose_batch_norm(const Graph& graph, std::string& bn, const std::string& variance, const Console& console) {
  if (bn.empty()) {
    bn = models::batch_norms_absorbed(graph) ? "frozen" : "sync";
    if (bn == "frozen")
      console.info("batch norm frozen: an exporter put its statistics into the scales (mean 0, variance 1); --bn sync would begin new ones");
  }
  if (variance != "population" && (bn == "frozen" || batch_norm_layers(graph).empty()))
    console.warn("--bn-variance: no batch norm takes statistics in this run");
}

void warn_of_few_values(const Graph& graph, const TrainerOptions& options, const Shape& batch, const Console& console) {
  constexpr std::int64_t kFew = 16;
  if (options.training.batch_norm == BatchNormMode::kFrozen || options.training.running.empty()) return;
  const std::int64_t samples =
      options.training.batch_norm == BatchNormMode::kSync ? batch[0] : split_batch(batch[0], options.shards.shards, options.shards.split).back();
  Shape shape = batch;
  shape[0] = samples;
  Graph shaped = graph;
  infer(shaped, {{shape}, {}});
  std::int64_t fewest = kFew, layers = 0;
  std::string name;
  for (const BatchNormLayer& l : batch_norm_layers(shaped)) {
    const Node& node = shaped.nodes[l.node];
    const Shape& in = shaped.value(node.inputs[0]).shape;
    const std::int64_t values = elements(in) / std::max<std::int64_t>(1, in.at(1));
    layers += values < kFew;
    if (values < fewest) name = node.name;
    fewest = std::min(fewest, values);
  }
  if (layers == 0) return;
  console.warn(fmt::format("batch norm {} takes its statistics from {} {} per channel{}: they will be poor; a larger batch or --bn frozen mends it",
                           quote(name), fewest, fewest == 1 ? "value" : "values",
                           layers == 1 ? "" : fmt::format(" (in all {} layers have fewer than {})", layers, kFew)));
}

}  // namespace tandem::cli
