#include "importer/model_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "importer/functions.h"
#include "importer/limits.h"
#include "importer/newer_fields.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem {
namespace {

Opsets read_opsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  if (imports.size() > 1000) throw InvalidModel(fmt::format("the model imports {} operator sets", imports.size()));
  Opsets opsets;
  for (const auto& import : imports) {
    const std::string domain = domain_of(import.domain());
    if (domain.empty())
      opsets.onnx = std::max<std::int64_t>(opsets.onnx, import.version());  // "" and "ai.onnx" may both be there
    else
      opsets.others[domain] = import.version();
  }
  return opsets;
}

void check_opset(std::int64_t opset) {
  if (opset < limits::kMinOpset || opset > limits::kMaxOpset) {
    throw Unsupported(fmt::format("opset {} is not supported; export the model with opset {} to {} (13 to 20 suit most exporters)", opset,
                                  limits::kMinOpset, limits::kMaxOpset));
  }
}

// Such a model needs no opset of ONNX's own operators; what it does use is named when its operators are looked up.
bool only_other_domains(const onnx::GraphProto& graph) {
  return graph.node_size() > 0 && std::none_of(graph.node().begin(), graph.node().end(), [](const auto& n) { return domain_of(n.domain()).empty(); });
}

void check_versions(const ModelFile& file) {
  const std::int64_t ir = file.proto.ir_version();
  if (!file.proto.has_graph()) throw InvalidModel("the file is no ONNX model: it holds no graph");
  if (ir < limits::kMinIr || ir > limits::kMaxIr)
    throw Unsupported(fmt::format("IR version {} is not supported; {} to {} are", ir, limits::kMinIr, limits::kMaxIr));
  if (file.opsets.onnx == 0 && only_other_domains(file.proto.graph())) return;
  if (file.opsets.onnx == 0) throw InvalidModel("the model does not say which opset of ONNX's operators (domain \"\") it uses");
  check_opset(file.opsets.onnx);
}

// Files that people give for models by mistake, by their first bytes.
void refuse_other_formats(wire::Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\x89HDF\r\n\x1a\n"))
    throw InvalidModel("the file is HDF5, as Keras' .h5, not ONNX; export the network from Keras (tf2onnx, or model.export with format=\"onnx\")");
  if (text.starts_with(std::string_view("PK\x03\x04", 4)))
    throw InvalidModel("the file is a zip archive, as Keras' .keras and PyTorch's .pt, not ONNX; export the network as ONNX");
}

Function read_function(const onnx::FunctionProto& proto, const Opsets& model) {
  Function f;
  f.proto = &proto;
  f.opsets = read_opsets(proto.opset_import());
  if (f.opsets.onnx == 0) f.opsets.onnx = model.onnx;
  check_opset(f.opsets.onnx);
  f.defaults = attribute_defaults(proto);
  return f;
}

void read_functions(ModelFile& file) {
  for (const auto& proto : file.proto.functions()) {
    const FunctionKey key{domain_of(proto.domain()), proto.name() + ":" + overload_of(proto)};
    if (!file.functions.emplace(key, read_function(proto, file.opsets)).second)
      throw InvalidModel(fmt::format("function {} is defined twice", quote(proto.name())));
  }
}

}  // namespace

std::string domain_of(const std::string& domain) { return domain == "ai.onnx" ? std::string() : domain; }

std::string describe(const onnx::NodeProto& node) {
  if (!node.name().empty()) return fmt::format("node {} ({})", quote(node.name()), node.op_type().substr(0, 200));
  for (const auto& out : node.output()) {
    if (!out.empty()) return fmt::format("node of {} ({})", quote(out), node.op_type().substr(0, 200));
  }
  return fmt::format("node without outputs ({})", node.op_type().substr(0, 200));
}

std::vector<const onnx::GraphProto*> subgraphs(const onnx::NodeProto& node) {
  std::vector<const onnx::GraphProto*> found;
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) found.push_back(&attribute.g());
    for (const auto& g : attribute.graphs()) found.push_back(&g);
  }
  return found;
}

const Function* ModelFile::function_of(const onnx::NodeProto& node) const {
  if (functions.empty()) return nullptr;
  const auto found = functions.find({domain_of(node.domain()), node.op_type() + ":" + overload_of(node)});
  return found == functions.end() ? nullptr : &found->second;
}

TensorFields ModelFile::tensor_fields(const onnx::TensorProto& stub) const {
  const std::size_t number = tensor_number(stub.raw_data());
  if (number >= tensors.size()) throw InvalidModel("a tensor is missing");
  return read_tensor_fields(tensors[number]);
}

ModelFile parse_model(wire::Bytes bytes, std::shared_ptr<const MappedFile> owner, const ImportOptions& options) {
  if (bytes.empty()) throw InvalidModel("the file is empty");
  refuse_other_formats(bytes);
  ModelFile file;
  file.options = options;
  file.owner = std::move(owner);
  {
    StrippedModel stripped = strip_model(bytes, options.record != nullptr);
    file.tensors = std::move(stripped.tensors);
    file.metadata_left_out = stripped.metadata_left_out;
    if (!file.proto.ParseFromString(stripped.message)) throw InvalidModel("the file is no ONNX model, or it is damaged");
  }
  file.opsets = read_opsets(file.proto.opset_import());
  check_versions(file);
  read_functions(file);
  check_functions(file);
  return file;
}

}  // namespace tandem
