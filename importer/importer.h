// Reads an ONNX model: IR 3 to 13, opset 1 to 25, from a file or from memory. The result speaks opset 24 alone: older forms are rewritten
// (rules.h), model-local functions inlined, Constants and initialisers are constants of the graph, half precision is widened to float32
// (Graph::declared_inputs and declared_outputs keep the file's types). What was changed stands in Graph::origin.notes.
//
// A file is data from a stranger: counts and sizes are checked before memory is taken, and nothing but the model and what its external data
// names inside the model's folder is opened (external_data.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "importer/file_record.h"
#include "runtime/graph/graph.h"

namespace tandem {

struct ImportOptions {
  // Accept external data files that have more than one name (a hard link could point at someone else's file).
  bool allow_hard_links = false;
  // What the file computes by the standard, instead of what it is meant for: batch normalisation in training mode uses the batch's statistics,
  // and Dropout in training mode with a ratio above 0 is refused, as its answer is random. Otherwise both are imported for inference.
  bool as_written = false;
  // Largest model file in bytes, external data not counted. Protobuf ends at 2 GiB.
  std::uint64_t max_file_bytes = (std::uint64_t{1} << 31) - 1;
  // Where given: is filled (file_record.h).
  FileRecord* record = nullptr;
};

// The graph of a model file. Constants may be views of the mapped file and keep it mapped.
// Throws InvalidModel for what contradicts itself or the standard, Unsupported for what tandem does not do (every operator it does not know
// in one message), both with the node as context; InvalidData when the file cannot be opened.
Graph import_file(const std::filesystem::path& file, const ImportOptions& options = {});

// The same from memory. The bytes are read during the call only. External data is looked up in `folder`; an empty path refuses it.
Graph import_bytes(std::span<const std::byte> bytes, const std::filesystem::path& folder, const ImportOptions& options = {});

}  // namespace tandem
