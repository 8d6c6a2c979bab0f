// Small ONNX models for the importer's tests, as the bytes of a ModelProto.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::test {

using Names = std::vector<std::string>;
using Ints = std::vector<std::int64_t>;

// AttributeProtos. Element types are ONNX's numbers (1 float32, 7 int64, 9 bool, 10 float16, 16 bfloat16).
std::string int_attribute(const std::string& name, std::int64_t value);
std::string float_attribute(const std::string& name, float value);
std::string text_attribute(const std::string& name, const std::string& value);
std::string ints_attribute(const std::string& name, const Ints& values);
std::string floats_attribute(const std::string& name, const std::vector<float>& values);
std::string tensor_attribute(const std::string& name, const std::string& tensor);
std::string graph_attribute(const std::string& name, const std::string& graph);
std::string reference_attribute(const std::string& name, const std::string& function_attribute);

// TensorProtos.
std::string raw_tensor(const std::string& name, int type, const Ints& dims, const std::string& raw);
std::string float_tensor(const std::string& name, const Ints& dims, const std::vector<float>& values);
std::string int64_tensor(const std::string& name, const Ints& dims, const Ints& values);
std::string external_tensor(const std::string& name, int type, const Ints& dims, const std::vector<std::pair<std::string, std::string>>& entries);

// NodeProto.
struct OnnxNode {
  std::string op;
  Names inputs, outputs;
  std::vector<std::string> attributes = {};
  std::string name = {}, domain = {};
  std::vector<std::pair<std::string, std::string>> metadata = {};
};
std::string node_bytes(const OnnxNode&);
// ValueInfoProto; -1: a dimension without a size.
std::string value_bytes(const std::string& name, int type, const Ints& dims);

struct OnnxGraph {
  std::vector<OnnxNode> nodes;
  std::vector<std::string> inputs, outputs;  // value_bytes
  std::vector<std::string> initializers = {};
  std::vector<std::pair<std::string, std::string>> metadata = {};
};
std::string graph_bytes(const OnnxGraph&);

struct OnnxFunction {
  std::string name, domain;
  Names inputs, outputs, attributes;
  std::vector<OnnxNode> nodes;
  std::int64_t opset = 17;
};

// b = inner(inner(a)), a function of domain "local".
OnnxFunction calling_twice(const std::string& name, const std::string& inner, const std::string& domain = "local");

struct OnnxModel {
  OnnxGraph graph;
  std::int64_t opset = 17, ir = 8;
  std::vector<OnnxFunction> functions = {};
  std::vector<std::pair<std::string, std::int64_t>> domains = {};  // further opset imports
  std::vector<std::pair<std::string, std::string>> metadata = {};
};
std::string model_bytes(const OnnxModel&);

// One node on float32 inputs of the given shapes ("x0", "x1" ...), outputs "y0" ....
OnnxModel one_node(const std::string& op, std::int64_t opset, const std::vector<Ints>& shapes, const std::vector<std::string>& attributes,
                   std::size_t outputs = 1);

}  // namespace tandem::test
