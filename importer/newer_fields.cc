#include "importer/newer_fields.h"

#include <fmt/format.h>
#include <google/protobuf/unknown_field_set.h>

#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem {
namespace {

constexpr int kNodeOverload = 8, kFunctionAttributeProto = 11, kFunctionOverload = 13, kNodeMetadata = 9, kGraphMetadata = 16;  // onnx.proto

// Contents of all length-delimited fields with this number, in order.
std::vector<std::string> contents(const google::protobuf::Message& message, int number) {
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  std::vector<std::string> found;
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto& field = unknown.field(i);
    if (field.number() == number && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) found.push_back(field.length_delimited());
  }
  return found;
}

std::map<std::string, std::string> entries(const google::protobuf::Message& message, int number) {
  std::map<std::string, std::string> found;
  for (const std::string& text : contents(message, number)) {
    onnx::StringStringEntryProto entry;
    if (entry.ParseFromString(text)) found[entry.key()] = entry.value();
  }
  return found;
}

std::string last_of(const std::vector<std::string>& values) { return values.empty() ? std::string() : values.back(); }

}  // namespace

std::string overload_of(const onnx::NodeProto& node) { return last_of(contents(node, kNodeOverload)); }
std::string overload_of(const onnx::FunctionProto& function) { return last_of(contents(function, kFunctionOverload)); }

std::map<std::string, std::string> metadata_of(const onnx::NodeProto& node) { return entries(node, kNodeMetadata); }
std::map<std::string, std::string> metadata_of(const onnx::GraphProto& graph) { return entries(graph, kGraphMetadata); }

std::vector<onnx::AttributeProto> attribute_defaults(const onnx::FunctionProto& function) {
  std::vector<onnx::AttributeProto> defaults;
  for (const std::string& text : contents(function, kFunctionAttributeProto)) {
    if (!defaults.emplace_back().ParseFromString(text))
      throw InvalidModel(fmt::format("function {} has a malformed attribute", quote(function.name())));
  }
  return defaults;
}

}  // namespace tandem
