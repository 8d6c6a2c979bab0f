// A parsed model file and what all parts of the importer share while it is read. It pulls in ONNX's protobuf classes, which are slow to compile:
// include it in few .cc files.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "importer/external_data.h"
#include "importer/importer.h"
#include "importer/strip.h"
#include "importer/tensor_wire.h"

namespace tandem {

// Operator sets in force where a node stands.
struct Opsets {
  std::int64_t onnx = 0;  // domain "" or "ai.onnx"; 0: not imported
  std::map<std::string, std::int64_t> others;
};

struct Function {
  const onnx::FunctionProto* proto = nullptr;
  Opsets opsets;
  std::vector<onnx::AttributeProto> defaults;  // attributes with a value (field attribute_proto, newer than the classes)
};
using FunctionKey = std::pair<std::string, std::string>;  // domain ("ai.onnx" is ""), name + overload

struct ModelFile {
  onnx::ModelProto proto;
  std::vector<wire::Bytes> tensors;         // strip.h
  std::shared_ptr<const MappedFile> owner;  // holds their bytes; null: copy them
  Opsets opsets;
  std::map<FunctionKey, Function> functions;
  bool metadata_left_out = false;  // strip.h
  ImportOptions options;

  const Function* function_of(const onnx::NodeProto&) const;  // null: an operator
  TensorFields tensor_fields(const onnx::TensorProto& stub) const;
};

// "ai.onnx" is another spelling of the standard domain "".
std::string domain_of(const std::string& domain);
// node "conv1" (Conv), for messages, from the file's own text.
std::string describe(const onnx::NodeProto&);
// Subgraphs among a node's attributes.
std::vector<const onnx::GraphProto*> subgraphs(const onnx::NodeProto&);

// Parses, checks IR, opsets and functions (a call graph with a cycle, or that expands to too many nodes, is refused).
ModelFile parse_model(wire::Bytes bytes, std::shared_ptr<const MappedFile> owner, const ImportOptions& options);

// Refuses a model that uses operators or forms which the importer does not know: all of them in one message.
void refuse_unknown_operators(const ModelFile&);

}  // namespace tandem
