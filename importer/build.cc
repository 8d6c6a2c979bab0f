#include "importer/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "importer/free_batch.h"
#include "importer/graph_builder.h"
#include "importer/limits.h"
#include "importer/newer_fields.h"
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

void fill_record(FileRecord& record, const ModelFile& file, Notes& notes) {
  record.graph = metadata_of(file.proto.graph());
  if (file.metadata_left_out) notes.add(fmt::format("metadata of nodes beyond {} MiB in all was left out", limits::kMetadataBytes >> 20));
  std::map<DType, double> elements_of;
  for (const wire::Bytes tensor : file.tensors) {
    const TensorFields fields = read_tensor_fields(tensor);
    double count = 1;
    for (const std::int64_t dim : fields.dims) count *= static_cast<double>(dim);
    for (const DType type : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
      if (fields.data_type == dtype_to_onnx(type)) elements_of[type] += count;
    }
  }
  const auto most = std::max_element(elements_of.begin(), elements_of.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  record.weights = most == elements_of.end() ? DType::kNone : most->first;
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
  if (file.options.record) fill_record(*file.options.record, file, notes);
  fill_origin(graph, file, notes);
  return graph;
}

}  // namespace tandem
