#include "importer/exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "importer/export_forms.h"
#include "importer/mapped_file.h"
#include "importer/sha1.h"
#include "importer/tensor_proto.h"
#include "importer/tensor_wire.h"
#include "importer/wire.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"
#include "runtime/base/safe_file.h"
#include "runtime/base/special_file.h"

namespace tandem {
namespace {

constexpr std::uint64_t kDataAlignment = 64;
constexpr std::uint32_t kNodeMetadata = 9, kGraphMetadata = 16, kModelMetadata = 14;  // onnx.proto, metadata_props
constexpr const char* kProducer = "tandem";
constexpr const char* kOriginKey = "tandem.origin";

// A StringStringEntryProto.
std::string text_entry(std::string_view key, std::string_view value) {
  std::string entry;
  wire::append_bytes(entry, 1, key);
  wire::append_bytes(entry, 2, value);
  return entry;
}

void append_metadata(std::string& message, std::uint32_t field, const FileRecord::Metadata& metadata) {
  for (const auto& [key, value] : metadata) wire::append_bytes(message, field, text_entry(key, value));
}

bool is_half(DType t) { return t == DType::kF16 || t == DType::kBF16; }

std::string_view data_of(const Tensor& tensor) { return {static_cast<const char*>(tensor.data()), tensor.bytes()}; }

std::string value_info(const std::string& name, DType dtype, const Declared& declared) {
  std::string type, info;
  if (dtype != DType::kNone) wire::append_integer(type, 1, static_cast<std::uint64_t>(dtype_to_onnx(dtype)));
  if (declared.shape_known) {
    std::string shape;
    for (std::size_t d = 0; d < declared.shape.size(); ++d) {
      std::string dim;
      if (declared.shape[d] >= 0)
        wire::append_integer(dim, 1, static_cast<std::uint64_t>(declared.shape[d]));
      else if (d < declared.symbols.size() && !declared.symbols[d].empty())
        wire::append_bytes(dim, 2, declared.symbols[d]);
      wire::append_bytes(shape, 1, dim);
    }
    wire::append_bytes(type, 2, shape);
  }
  std::string holder;
  wire::append_bytes(holder, 1, type);
  wire::append_bytes(info, 1, name);
  if (dtype != DType::kNone) wire::append_bytes(info, 2, holder);
  return info;
}

// Writes graphs; one for a model, so that names are unique over the branches of Ifs too.
class GraphWriter {
 public:
  GraphWriter(std::int64_t opset, const FileRecord* record) : opset_(opset), record_(record) {}

  struct Written {
    std::string message;             // GraphProto without initialisers
    std::vector<ValueId> constants;  // read by it, in order of their first use
    std::set<ValueId> used;          // the same
    std::vector<std::string> names;  // of all values
  };

  // The main graph, with Casts at a half-precision border.
  Written main_graph(const Graph& graph) {
    Written w;
    for (const Value& value : graph.values) w.names.push_back(unique(value.name));
    std::string nodes_after;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) input(graph, i, w);
    std::set<ValueId> cast;
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) output(graph, i, w, nodes_after, cast);
    nodes(graph, w);
    w.message += nodes_after;
    for (const ValueId id : graph.outputs) use(graph, id, w);
    wire::append_bytes(w.message, 2, graph.name.empty() ? "tandem" : graph.name);
    if (record_) append_metadata(w.message, kGraphMetadata, record_->graph);
    return w;
  }

 private:
  std::string unique(const std::string& name) {
    std::string made = name;
    for (std::size_t n = 2; !names_.insert(made).second; ++n) made = fmt::format("{}#{}", name, n);
    return made;
  }

  void input(const Graph& graph, std::size_t i, Written& w) {
    const Declared declared = i < graph.declared_inputs.size() ? graph.declared_inputs[i] : Declared{};
    const ValueId id = graph.inputs[i];
    auto& name = w.names[static_cast<std::size_t>(id)];
    const DType dtype = declared.dtype == DType::kNone ? graph.value(id).dtype : declared.dtype;
    wire::append_bytes(w.message, 11, value_info(name, dtype, declared));
    if (!is_half(declared.dtype)) return;
    const std::string inner = unique(name + "/float32");
    wire::append_bytes(w.message, 1, cast_node(name, inner, DType::kF32));
    name = inner;
  }

  void output(const Graph& graph, std::size_t i, Written& w, std::string& nodes_after, std::set<ValueId>& cast) {
    const Declared declared = i < graph.declared_outputs.size() ? graph.declared_outputs[i] : Declared{};
    const ValueId id = graph.outputs[i];
    const std::string name = graph.value(id).name;
    const DType dtype = declared.dtype == DType::kNone ? graph.value(id).dtype : declared.dtype;
    wire::append_bytes(w.message, 12, value_info(name, dtype, declared));
    const bool is_input = std::find(graph.inputs.begin(), graph.inputs.end(), id) != graph.inputs.end();
    if (!is_half(declared.dtype) || is_input || !cast.insert(id).second) return;
    const std::string inner = unique(name + "/float32");
    wire::append_bytes(nodes_after, 1, cast_node(inner, name, declared.dtype));
    w.names[static_cast<std::size_t>(id)] = inner;
  }

  void nodes(const Graph& graph, Written& w) {
    for (const Node& node : graph.nodes) {
      const Node written = node_at_opset(graph, node, opset_);
      std::string message;
      std::size_t inputs = written.op == "If" ? 1 : written.inputs.size();  // captured values are read by name
      for (const ValueId in : written.inputs) use(graph, in, w);
      for (std::size_t i = 0; i < inputs; ++i) wire::append_bytes(message, 1, name_of_value(w, written.inputs[i]));
      for (const ValueId out : written.outputs) wire::append_bytes(message, 2, name_of_value(w, out));
      wire::append_bytes(message, 3, written.name);
      wire::append_bytes(message, 4, written.op);
      for (const auto& [name, value] : written.attributes) wire::append_bytes(message, 5, attribute(name, value, written, w));
      // Older than IR 10 the fields are unknown ones, which readers pass over.
      if (const auto* metadata = metadata_of(graph, node)) append_metadata(message, kNodeMetadata, *metadata);
      wire::append_bytes(w.message, 1, message);
    }
  }

  const FileRecord::Metadata* metadata_of(const Graph& graph, const Node& node) const {
    const auto made = std::find_if(node.outputs.begin(), node.outputs.end(), [](ValueId id) { return id != kNoValue; });
    return record_ ? record_->node(node.name, made == node.outputs.end() ? std::string() : graph.value(*made).name) : nullptr;
  }

  static std::string name_of_value(const Written& w, ValueId id) { return id == kNoValue ? std::string() : w.names[static_cast<std::size_t>(id)]; }

  void use(const Graph& graph, ValueId id, Written& w) {
    if (id == kNoValue || !graph.value(id).known()) return;
    if (w.used.insert(id).second) w.constants.push_back(id);
  }

  std::string cast_node(const std::string& from, const std::string& to, DType dtype) {
    std::string a, message;
    wire::append_bytes(a, 1, "to");
    wire::append_integer(a, 3, static_cast<std::uint64_t>(dtype_to_onnx(dtype)));
    wire::append_integer(a, 20, 2);
    wire::append_bytes(message, 1, from);
    wire::append_bytes(message, 2, to);
    wire::append_bytes(message, 3, unique("Cast:" + to));
    wire::append_bytes(message, 4, "Cast");
    wire::append_bytes(message, 5, a);
    return message;
  }

  // A branch reads its captured values under their outer names; its constants are its own initialisers.
  std::string branch(const Graph& graph, const Node& node, const Written& outer) {
    Written w;
    for (const Value& value : graph.values) w.names.push_back(value.name);
    std::vector<char> named(graph.values.size(), 0);
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      w.names[static_cast<std::size_t>(graph.inputs[i])] = name_of_value(outer, node.inputs.at(i + 1));
      named[static_cast<std::size_t>(graph.inputs[i])] = 1;
    }
    for (std::size_t v = 0; v < named.size(); ++v) {
      if (!named[v]) w.names[v] = unique(w.names[v]);
    }
    nodes(graph, w);
    for (const ValueId id : graph.outputs) {
      use(graph, id, w);
      wire::append_bytes(w.message, 12, value_info(name_of_value(w, id), DType::kNone, {}));
    }
    for (const ValueId id : w.constants)
      wire::append_bytes(w.message, 5, serialize_tensor(w.names[static_cast<std::size_t>(id)], graph.value(id).constant));
    wire::append_bytes(w.message, 2, graph.name.empty() ? "branch" : graph.name);
    return w.message;
  }

  std::string attribute(const std::string& name, const AttributeValue& value, const Node& node, const Written& w) {
    std::string out;
    wire::append_bytes(out, 1, name);
    const auto kind = [&](std::uint64_t number) { wire::append_integer(out, 20, number); };
    const auto real = [&](std::uint32_t field, float v) {
      wire::append_tag(out, field, wire::Type::kFixed32);
      out.append(reinterpret_cast<const char*>(&v), sizeof v);
    };
    if (const auto* i = std::get_if<std::int64_t>(&value)) {
      wire::append_integer(out, 3, static_cast<std::uint64_t>(*i));
      kind(2);
    } else if (const auto* f = std::get_if<float>(&value)) {
      real(2, *f);
      kind(1);
    } else if (const auto* s = std::get_if<std::string>(&value)) {
      wire::append_bytes(out, 4, *s);
      kind(3);
    } else if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value)) {
      for (const std::int64_t v : *ints) wire::append_integer(out, 8, static_cast<std::uint64_t>(v));
      kind(7);
    } else if (const auto* floats = std::get_if<std::vector<float>>(&value)) {
      for (const float v : *floats) real(7, v);
      kind(6);
    } else if (const auto* strings = std::get_if<std::vector<std::string>>(&value)) {
      for (const std::string& v : *strings) wire::append_bytes(out, 9, v);
      kind(8);
    } else if (const auto* t = std::get_if<Tensor>(&value)) {
      wire::append_bytes(out, 5, serialize_tensor("", *t));
      kind(4);
    } else {
      wire::append_bytes(out, 6, branch(*std::get<std::shared_ptr<const Graph>>(value), node, w));
      kind(5);
    }
    return out;
  }

  const std::int64_t opset_;
  const FileRecord* const record_;
  std::set<std::string> names_;
};

// Who exported the network first: kept when tandem writes it again. Empty for what tandem made.
std::string origin_of(const Graph& graph) {
  const Origin& o = graph.origin;
  if (o.producer == kProducer || o.opset == 0) return "";
  return fmt::format("{}{}{}, opset {}, IR {}", o.producer.empty() ? "unknown" : o.producer, o.producer_version.empty() ? "" : " ",
                     o.producer_version, o.opset, o.ir_version);
}

std::int64_t ir_of(std::int64_t opset) { return opset <= 18 ? 8 : opset <= 20 ? 9 : opset <= 22 ? 10 : opset == 23 ? 11 : 12; }

std::string model_message(const Graph& graph, std::int64_t opset) {
  std::string out, set;
  wire::append_integer(out, 1, static_cast<std::uint64_t>(ir_of(opset)));
  wire::append_bytes(out, 2, kProducer);
  wire::append_bytes(out, 3, TANDEM_VERSION);
  wire::append_bytes(set, 1, "");
  wire::append_integer(set, 2, static_cast<std::uint64_t>(opset));
  wire::append_bytes(out, 8, set);
  auto metadata = graph.metadata;
  if (const std::string origin = origin_of(graph); !origin.empty()) metadata.emplace(kOriginKey, origin);
  append_metadata(out, kModelMetadata, metadata);
  return out;
}

// Writes the constants to their own file and gives the TensorProtos that point there.
std::vector<std::string> write_data_file(const Graph& graph, const GraphWriter::Written& w, const std::filesystem::path& file) {
  std::vector<std::string> headers;
  SafeFile out(file.string());
  for (const ValueId id : w.constants) {
    const Tensor& tensor = graph.value(id).constant;
    out.write(std::string((kDataAlignment - out.written() % kDataAlignment) % kDataAlignment, '\0'));
    std::string header = tensor_header(w.names[static_cast<std::size_t>(id)], tensor);
    wire::append_bytes(header, 13, text_entry("location", file.filename().string()));
    wire::append_bytes(header, 13, text_entry("offset", std::to_string(out.written())));
    wire::append_bytes(header, 13, text_entry("length", std::to_string(tensor.bytes())));
    wire::append_integer(header, 14, 1);
    headers.push_back(std::move(header));
    out.write(data_of(tensor.made()));
  }
  out.commit();
  // The digest by which a data file that was changed or exchanged is refused.
  const std::string digest = sha1_hex(MappedFile::open(file, std::numeric_limits<std::int64_t>::max())->bytes());
  for (std::string& header : headers) wire::append_bytes(header, 13, text_entry("checksum", digest));
  return headers;
}

// The model with the constants' bytes written straight from where they lie.
void write_model(SafeFile& out, const Graph& graph, const GraphWriter::Written& w, const std::string& model, const std::vector<std::string>& headers,
                 bool external) {
  std::uint64_t size = w.message.size();
  std::vector<std::uint64_t> lengths;
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const std::uint64_t data = external ? 0 : graph.value(w.constants[i]).constant.bytes();
    lengths.push_back(headers[i].size() + (external ? 0 : 1 + wire::varint_size(data) + data));
    size += 1 + wire::varint_size(lengths.back()) + lengths.back();
  }
  std::string piece = model;
  wire::append_tag(piece, 7, wire::Type::kBytes);
  wire::append_varint(piece, size);
  out.write(piece);
  out.write(w.message);
  for (std::size_t i = 0; i < headers.size(); ++i) {
    piece.clear();
    wire::append_tag(piece, 5, wire::Type::kBytes);
    wire::append_varint(piece, lengths[i]);
    piece += headers[i];
    const Tensor& constant = graph.value(w.constants[i]).constant;
    if (!external) {
      wire::append_tag(piece, 9, wire::Type::kBytes);
      wire::append_varint(piece, constant.bytes());
    }
    out.write(piece);
    if (!external) out.write(data_of(constant.made()));
  }
}

}  // namespace

void write_onnx(const Graph& graph, const std::filesystem::path& target, const ExportOptions& options) {
  const std::int64_t oldest = oldest_opset(graph), opset = options.opset == 0 ? oldest : options.opset;
  if (opset < oldest || opset > 24) throw Unsupported(fmt::format("this network can be written with opset {} to 24, not {}", oldest, opset));
  GraphWriter writer(opset, options.record);
  const GraphWriter::Written w = writer.main_graph(graph);
  std::uint64_t bytes = w.message.size();
  std::vector<std::string> headers;
  for (const ValueId id : w.constants) {
    headers.push_back(tensor_header(w.names[static_cast<std::size_t>(id)], graph.value(id).constant));
    bytes += graph.value(id).constant.bytes();
  }
  const bool external = bytes > options.external_above;
  if (external) {
    if (is_special_file(target))
      throw InvalidData(fmt::format("{} is no regular file: a network of this size needs a second file beside it", quote(target.string())));
    auto data_file = target;
    data_file += ".data";
    headers = write_data_file(graph, w, data_file);
  }
  SafeFile out(target.string());
  write_model(out, graph, w, model_message(graph, opset), headers, external);
  out.commit();
}

}  // namespace tandem
