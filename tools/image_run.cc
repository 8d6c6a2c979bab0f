#include "tools/image_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tandem::cli {

void say_unused_outputs(const Graph& graph, const Console& console) {
  if (graph.outputs.size() < 2) return;
  std::vector<std::string> rest;
  for (std::size_t i = 1; i < graph.outputs.size(); ++i) rest.push_back("\"" + graph.value(graph.outputs[i]).name + "\"");
  console.info(printable(fmt::format("the network has {} outputs: \"{}\" is taken, {} left out", graph.outputs.size(),
                                     graph.value(graph.outputs[0]).name, fmt::join(rest, ", "))));
}

bool describe_run(const Classifier& classifier, const RunFlags& flags, const RunOptions& options, std::int64_t batch, const Console& console) {
  const RunReport report = classifier.plan(batch);
  log_placement(flags, options, report, console);
  const bool independent = report.cut || classifier.batch(batch) == 1;
  if (!independent) {
    console.warn(printable(fmt::format("images of one batch may influence each other, so results may change with {}: {}",
                                       classifier.fixed_batch() > 0 ? "the order of the images" : fmt::format("--batch-size (here {})", batch),
                                       report.reason)));
  }
  return independent;
}

}  // namespace tandem::cli
