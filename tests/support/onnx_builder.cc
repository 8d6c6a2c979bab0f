#include "tests/support/onnx_builder.h"

#include "importer/wire.h"

namespace tandem::test {
namespace {

void real(std::string& out, std::uint32_t field, float value) {
  wire::append_tag(out, field, wire::Type::kFixed32);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string named(const std::string& name, std::uint64_t kind) {
  std::string out;
  wire::append_bytes(out, 1, name);
  wire::append_integer(out, 20, kind);
  return out;
}

std::string tensor_start(const std::string& name, int type, const Ints& dims) {
  std::string out;
  for (const std::int64_t d : dims) wire::append_integer(out, 1, static_cast<std::uint64_t>(d));
  wire::append_integer(out, 2, static_cast<std::uint64_t>(type));
  wire::append_bytes(out, 8, name);
  return out;
}

std::string entry(const std::string& key, const std::string& value) {
  std::string out;
  wire::append_bytes(out, 1, key);
  wire::append_bytes(out, 2, value);
  return out;
}

std::string opset_bytes(const std::string& domain, std::int64_t version) {
  std::string out;
  wire::append_bytes(out, 1, domain);
  wire::append_integer(out, 2, static_cast<std::uint64_t>(version));
  return out;
}

std::string function_bytes(const OnnxFunction& f) {
  std::string out;
  wire::append_bytes(out, 1, f.name);
  for (const auto& n : f.inputs) wire::append_bytes(out, 4, n);
  for (const auto& n : f.outputs) wire::append_bytes(out, 5, n);
  for (const auto& n : f.attributes) wire::append_bytes(out, 6, n);
  for (const auto& n : f.nodes) wire::append_bytes(out, 7, node_bytes(n));
  wire::append_bytes(out, 9, opset_bytes("", f.opset));
  wire::append_bytes(out, 10, f.domain);
  return out;
}

}  // namespace

std::string int_attribute(const std::string& name, std::int64_t value) {
  std::string out = named(name, 2);
  wire::append_integer(out, 3, static_cast<std::uint64_t>(value));
  return out;
}
std::string float_attribute(const std::string& name, float value) {
  std::string out = named(name, 1);
  real(out, 2, value);
  return out;
}
std::string text_attribute(const std::string& name, const std::string& value) {
  std::string out = named(name, 3);
  wire::append_bytes(out, 4, value);
  return out;
}
std::string ints_attribute(const std::string& name, const Ints& values) {
  std::string out = named(name, 7);
  for (const std::int64_t v : values) wire::append_integer(out, 8, static_cast<std::uint64_t>(v));
  return out;
}
std::string floats_attribute(const std::string& name, const std::vector<float>& values) {
  std::string out = named(name, 6);
  for (const float v : values) real(out, 7, v);
  return out;
}
std::string tensor_attribute(const std::string& name, const std::string& tensor) {
  std::string out = named(name, 4);
  wire::append_bytes(out, 5, tensor);
  return out;
}
std::string graph_attribute(const std::string& name, const std::string& graph) {
  std::string out = named(name, 5);
  wire::append_bytes(out, 6, graph);
  return out;
}
std::string reference_attribute(const std::string& name, const std::string& function_attribute) {
  std::string out = named(name, 2);
  wire::append_bytes(out, 21, function_attribute);
  return out;
}

std::string raw_tensor(const std::string& name, int type, const Ints& dims, const std::string& raw) {
  std::string out = tensor_start(name, type, dims);
  wire::append_bytes(out, 9, raw);
  return out;
}
std::string float_tensor(const std::string& name, const Ints& dims, const std::vector<float>& values) {
  return raw_tensor(name, 1, dims, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}
std::string int64_tensor(const std::string& name, const Ints& dims, const Ints& values) {
  return raw_tensor(name, 7, dims, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::int64_t)});
}
std::string external_tensor(const std::string& name, int type, const Ints& dims, const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out = tensor_start(name, type, dims);
  wire::append_integer(out, 14, 1);
  for (const auto& [key, value] : entries) wire::append_bytes(out, 13, entry(key, value));
  return out;
}

std::string node_bytes(const OnnxNode& node) {
  std::string out;
  for (const auto& n : node.inputs) wire::append_bytes(out, 1, n);
  for (const auto& n : node.outputs) wire::append_bytes(out, 2, n);
  wire::append_bytes(out, 3, node.name);
  wire::append_bytes(out, 4, node.op);
  for (const auto& a : node.attributes) wire::append_bytes(out, 5, a);
  wire::append_bytes(out, 7, node.domain);
  for (const auto& [key, value] : node.metadata) wire::append_bytes(out, 9, entry(key, value));
  return out;
}

std::string value_bytes(const std::string& name, int type, const Ints& dims) {
  std::string shape, tensor, holder, out;
  for (const std::int64_t d : dims) {
    std::string dim;
    if (d >= 0) wire::append_integer(dim, 1, static_cast<std::uint64_t>(d));
    wire::append_bytes(shape, 1, dim);
  }
  wire::append_integer(tensor, 1, static_cast<std::uint64_t>(type));
  wire::append_bytes(tensor, 2, shape);
  wire::append_bytes(holder, 1, tensor);
  wire::append_bytes(out, 1, name);
  wire::append_bytes(out, 2, holder);
  return out;
}

std::string graph_bytes(const OnnxGraph& graph) {
  std::string out;
  for (const auto& n : graph.nodes) wire::append_bytes(out, 1, node_bytes(n));
  wire::append_bytes(out, 2, "g");
  for (const auto& t : graph.initializers) wire::append_bytes(out, 5, t);
  for (const auto& v : graph.inputs) wire::append_bytes(out, 11, v);
  for (const auto& v : graph.outputs) wire::append_bytes(out, 12, v);
  for (const auto& [key, value] : graph.metadata) wire::append_bytes(out, 16, entry(key, value));
  return out;
}

std::string model_bytes(const OnnxModel& model) {
  std::string out;
  wire::append_integer(out, 1, static_cast<std::uint64_t>(model.ir));
  wire::append_bytes(out, 2, "test");
  wire::append_bytes(out, 7, graph_bytes(model.graph));
  wire::append_bytes(out, 8, opset_bytes("", model.opset));
  for (const auto& [domain, version] : model.domains) wire::append_bytes(out, 8, opset_bytes(domain, version));
  for (const auto& [key, value] : model.metadata) wire::append_bytes(out, 14, entry(key, value));
  for (const auto& f : model.functions) wire::append_bytes(out, 25, function_bytes(f));
  return out;
}

OnnxFunction calling_twice(const std::string& name, const std::string& inner, const std::string& domain) {
  return {.name = name,
          .domain = "local",
          .inputs = {"a"},
          .outputs = {"b"},
          .attributes = {},
          .nodes = {{.op = inner, .inputs = {"a"}, .outputs = {"m"}, .domain = domain},
                    {.op = inner, .inputs = {"m"}, .outputs = {"b"}, .domain = domain}}};
}

OnnxModel one_node(const std::string& op, std::int64_t opset, const std::vector<Ints>& shapes, const std::vector<std::string>& attributes,
                   std::size_t outputs) {
  OnnxModel model;
  model.opset = opset;
  OnnxNode node{.op = op, .inputs = {}, .outputs = {}, .attributes = attributes};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    node.inputs.push_back("x" + std::to_string(i));
    model.graph.inputs.push_back(value_bytes(node.inputs.back(), 1, shapes[i]));
  }
  for (std::size_t i = 0; i < outputs; ++i) {
    node.outputs.push_back("y" + std::to_string(i));
    model.graph.outputs.push_back(value_bytes(node.outputs.back(), 1, {}));
  }
  model.graph.nodes.push_back(node);
  return model;
}

}  // namespace tandem::test
