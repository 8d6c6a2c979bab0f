#include "importer/strip.h"

#include <fmt/format.h>

#include <cstring>

#include "importer/limits.h"
#include "runtime/base/error.h"

namespace tandem {
namespace {

enum class Kind : std::uint8_t { kModel, kGraph, kNode, kAttribute, kFunction, kSparse, kTensor, kLeaf, kName, kMetadata };

// Field numbers of onnx.proto that are kept, and what they hold; all others are dropped. kLeaf is copied as it is.
struct Rule {
  std::uint32_t number;
  Kind holds;
};
constexpr Rule kModelRules[] = {{1, Kind::kLeaf},  {2, Kind::kName}, {3, Kind::kName},  {4, Kind::kName},     {5, Kind::kLeaf},
                                {7, Kind::kGraph}, {8, Kind::kLeaf}, {14, Kind::kLeaf}, {25, Kind::kFunction}};
constexpr Rule kGraphRules[] = {{1, Kind::kNode},  {2, Kind::kName},    {5, Kind::kTensor},   {11, Kind::kLeaf},
                                {12, Kind::kLeaf}, {15, Kind::kSparse}, {16, Kind::kMetadata}};
constexpr Rule kNodeRules[] = {{1, Kind::kName},      {2, Kind::kName}, {3, Kind::kName}, {4, Kind::kName},
                               {5, Kind::kAttribute}, {7, Kind::kName}, {8, Kind::kName}, {9, Kind::kMetadata}};
constexpr Rule kAttributeRules[] = {{1, Kind::kName},   {2, Kind::kLeaf},  {3, Kind::kLeaf},  {4, Kind::kLeaf},    {5, Kind::kTensor},
                                    {6, Kind::kGraph},  {7, Kind::kLeaf},  {8, Kind::kLeaf},  {9, Kind::kLeaf},    {10, Kind::kTensor},
                                    {11, Kind::kGraph}, {20, Kind::kLeaf}, {21, Kind::kName}, {22, Kind::kSparse}, {23, Kind::kSparse}};
constexpr Rule kFunctionRules[] = {{1, Kind::kName}, {4, Kind::kName},  {5, Kind::kName},       {6, Kind::kName}, {7, Kind::kNode},
                                   {9, Kind::kLeaf}, {10, Kind::kName}, {11, Kind::kAttribute}, {13, Kind::kName}};
constexpr Rule kSparseRules[] = {{1, Kind::kTensor}, {2, Kind::kTensor}, {3, Kind::kLeaf}};

std::span<const Rule> rules_of(Kind kind) {
  switch (kind) {
    case Kind::kModel:
      return kModelRules;
    case Kind::kGraph:
      return kGraphRules;
    case Kind::kNode:
      return kNodeRules;
    case Kind::kAttribute:
      return kAttributeRules;
    case Kind::kFunction:
      return kFunctionRules;
    case Kind::kSparse:
      return kSparseRules;
    default:
      return {};
  }
}

class Stripper {
 public:
  explicit Stripper(bool metadata) : keeps_metadata_(metadata) {}

  StrippedModel result;

  // Recursion is bounded: every cycle in the rules goes through a graph, and graphs nest at most kSubgraphDepth deep.
  std::string strip(wire::Bytes message, Kind kind, int depth) {
    if (kind == Kind::kGraph && ++depth > limits::kSubgraphDepth + 1)
      throw InvalidModel(fmt::format("subgraphs are nested more than {} deep", limits::kSubgraphDepth));
    std::string out;
    wire::Reader reader(message);
    for (wire::Field field; reader.next(field);) {
      for (const Rule& rule : rules_of(kind)) {
        if (rule.number == field.number) copy(out, field, rule.holds, depth);
      }
    }
    return out;
  }

 private:
  void copy(std::string& out, const wire::Field& field, Kind holds, int depth) {
    count(fields_, limits::kFields, "fields");
    if (field.type != wire::Type::kBytes) {
      if (holds == Kind::kLeaf) copy_number(out, field);
      return;  // a message or string with another wire type is an unknown field to protobuf
    }
    if (holds == Kind::kMetadata) return copy_metadata(out, field);
    if (holds == Kind::kNode) count(nodes_, limits::kNodes, "nodes");
    if (holds == Kind::kName && field.bytes.size() > limits::kNameBytes) {
      throw InvalidModel(
          fmt::format("a name has {} bytes, at most {} are allowed: \"{}...\"", field.bytes.size(), limits::kNameBytes, field.text().substr(0, 64)));
    }
    if (holds == Kind::kTensor) {
      count(tensors_, limits::kTensors, "tensors");
      append(out, field.number, tensor_stub(field.bytes));
    } else if (holds == Kind::kLeaf || holds == Kind::kName) {
      append(out, field.number, field.text());
    } else {
      append(out, field.number, strip(field.bytes, holds, depth));
    }
  }

  void copy_metadata(std::string& out, const wire::Field& field) {
    if (!keeps_metadata_) return;
    metadata_bytes_ += field.bytes.size();
    if (metadata_bytes_ <= limits::kMetadataBytes)
      append(out, field.number, field.text());
    else
      result.metadata_left_out = true;
  }

  std::string tensor_stub(wire::Bytes tensor) {
    const std::uint64_t number = result.tensors.size();
    result.tensors.push_back(tensor);
    std::string stub;
    wire::append_bytes(stub, 9, {reinterpret_cast<const char*>(&number), sizeof number});
    return stub;
  }

  void append(std::string& out, std::uint32_t number, std::string_view content) {
    // Inner messages are counted again by the outer ones: the bound holds for what is in memory at any time.
    bytes_ += content.size();
    if (bytes_ > limits::kBytesBesideTensors * 4)
      throw InvalidModel(fmt::format("the model holds more than {} MiB beside its tensors", limits::kBytesBesideTensors >> 20));
    wire::append_bytes(out, number, content);
  }

  void copy_number(std::string& out, const wire::Field& field) {
    wire::append_tag(out, field.number, field.type);
    if (field.type == wire::Type::kVarint)
      wire::append_varint(out, field.varint);
    else
      out.append(field.text());
    if (out.size() > limits::kBytesBesideTensors)
      throw InvalidModel(fmt::format("the model holds more than {} MiB beside its tensors", limits::kBytesBesideTensors >> 20));
  }

  static void count(std::size_t& counter, std::size_t limit, const char* what) {
    if (++counter > limit) throw InvalidModel(fmt::format("the model has more than {} {}", limit, what));
  }

  const bool keeps_metadata_;
  std::size_t fields_ = 0, nodes_ = 0, tensors_ = 0, bytes_ = 0, metadata_bytes_ = 0;
};

}  // namespace

StrippedModel strip_model(wire::Bytes file, bool metadata) {
  Stripper stripper(metadata);
  stripper.result.message = stripper.strip(file, Kind::kModel, 0);
  if (stripper.result.message.size() > limits::kBytesBesideTensors)
    throw InvalidModel(fmt::format("the model holds more than {} MiB beside its tensors", limits::kBytesBesideTensors >> 20));
  return std::move(stripper.result);
}

std::size_t tensor_number(std::string_view raw_data) {
  std::uint64_t number = 0;
  if (raw_data.size() != sizeof number) throw InvalidModel("a tensor is missing");
  std::memcpy(&number, raw_data.data(), sizeof number);
  return static_cast<std::size_t>(number);
}

}  // namespace tandem
