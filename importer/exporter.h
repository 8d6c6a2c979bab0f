// Writes a graph as standard ONNX.
#pragma once

#include <cstdint>
#include <filesystem>

#include "importer/file_record.h"
#include "runtime/graph/graph.h"

namespace tandem {

struct ExportOptions {
  // Opset to write; 0: the oldest from 17 on in which every node can be said (17 is what most tools read).
  std::int64_t opset = 0;
  // With more bytes of constants than this they go to a second file, the target's name and ".data", with its SHA-1 as every tensor's
  // checksum. Protobuf ends at 2 GiB.
  std::uint64_t external_above = 1'900'000'000;
  // Of the file that the graph came from: its metadata of graph and nodes is written again.
  const FileRecord* record = nullptr;
};

// The oldest opset from 17 on that has all operators and forms of the graph. Throws Unsupported naming a node whose operator is none of ONNX's
// (one that a pass of the planner made).
std::int64_t oldest_opset(const Graph& graph);

// Writes the graph with its metadata, declared inputs and outputs. Inputs and outputs that the file declared as half precision stay so: Casts are
// put at the border. The result is the same for the same graph, byte for byte. Files appear whole or not at all (runtime/base/safe_file.h); names are
// ours. Throws Unsupported where `opset` cannot say a node, InvalidData where the files cannot be written.
void write_onnx(const Graph& graph, const std::filesystem::path& target, const ExportOptions& options = {});

}  // namespace tandem
