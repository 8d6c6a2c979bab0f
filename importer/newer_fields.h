// Fields of onnx.proto that are newer than the protobuf classes of libonnx 1.12 (IR 8): protobuf keeps them as unknown fields.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <vector>

namespace tandem {

// Which of several functions of one name is meant (IR 10).
std::string overload_of(const onnx::NodeProto& node);
std::string overload_of(const onnx::FunctionProto& function);
// Attributes of a function that have a value when the call gives none (FunctionProto.attribute_proto, IR 9). Throws InvalidModel when malformed.
std::vector<onnx::AttributeProto> attribute_defaults(const onnx::FunctionProto& function);
// metadata_props (IR 10); what is malformed is left out.
std::map<std::string, std::string> metadata_of(const onnx::NodeProto& node);
std::map<std::string, std::string> metadata_of(const onnx::GraphProto& graph);

}  // namespace tandem
