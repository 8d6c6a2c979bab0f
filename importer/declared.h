// Declared types and shapes of graph inputs and outputs.
#pragma once

#include <onnx/onnx_pb.h>

#include "runtime/graph/graph.h"

namespace tandem {

// `what`: "input" or "output", for messages. Sequences, maps, optionals and sparse tensors are refused. A dimension that is negative or 0 in the
// file is dynamic: exporters write both for an unknown batch.
Declared read_declared(const onnx::ValueInfoProto&, const char* what);

}  // namespace tandem
