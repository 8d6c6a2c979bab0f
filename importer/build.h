// Builds the graph of a parsed model.
#pragma once

#include "importer/external_data.h"
#include "importer/model_file.h"
#include "runtime/graph/graph.h"

namespace tandem {

// In opset-24 operators, sorted, with declared inputs and outputs, metadata and origin (but Origin::file).
Graph build_graph(const ModelFile&, ExternalData&);

}  // namespace tandem
