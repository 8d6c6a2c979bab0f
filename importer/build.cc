#include "importer/build.h"

#include "importer/free_batch.h"
#include "importer/graph_builder.h"
#include "runtime/base/error.h"

namespace tandem {
namespace {

void fill_origin(Graph& graph, const ModelFile& file, const Notes& notes) {
  graph.origin.producer = file.proto.producer_name();
  graph.origin.producer_version = file.proto.producer_version();
  graph.origin.ir_version = file.proto.ir_version();
  graph.origin.opset = file.opsets.onnx;
  graph.origin.notes = notes.lines();
  for (const auto& entry : file.proto.metadata_props()) graph.metadata[entry.key()] = entry.value();
}

}  // namespace

Graph build_graph(const ModelFile& file, ExternalData& external) {
  AttributeReader attributes(file, external);
  Notes notes;
  GraphBuilder builder(file, attributes, notes, nullptr);
  builder.build(file.proto.graph());
  Graph graph = std::move(builder.editor().graph);
  remove_dead_nodes(graph);
  free_batch(graph, notes);
  fill_origin(graph, file, notes);
  return graph;
}

}  // namespace tandem
