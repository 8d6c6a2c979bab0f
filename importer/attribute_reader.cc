#include "importer/attribute_reader.h"

#include <fmt/format.h>

#include <cstring>

#include "importer/limits.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem {
namespace {

// The kind of an attribute; files before IR 2 and careless writers leave `type` out.
onnx::AttributeProto::AttributeType kind_of(const onnx::AttributeProto& a) {
  using A = onnx::AttributeProto;
  if (a.has_type() && a.type() != A::UNDEFINED) return a.type();
  if (a.has_f()) return A::FLOAT;
  if (a.has_i()) return A::INT;
  if (a.has_s()) return A::STRING;
  if (a.has_t()) return A::TENSOR;
  if (a.has_g()) return A::GRAPH;
  if (a.floats_size() > 0) return A::FLOATS;
  if (a.ints_size() > 0) return A::INTS;
  if (a.strings_size() > 0) return A::STRINGS;
  return A::UNDEFINED;
}

// Where element k of a sparse tensor lies in the dense one. Indices are flat [NNZ] or by dimension [NNZ, rank].
std::int64_t dense_position(const Tensor& indices, const Shape& dims, std::int64_t k) {
  const auto at = indices.as<std::int64_t>();
  const std::int64_t total = elements(dims);
  std::int64_t position = 0;
  if (indices.rank() == 1) {
    position = at[static_cast<std::size_t>(k)];
  } else {
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const std::int64_t i = at[static_cast<std::size_t>(k) * dims.size() + d];
      if (i < 0 || i >= dims[d]) throw InvalidModel(fmt::format("sparse tensor: index {} is outside dimension {}", i, dims[d]));
      position = position * dims[d] + i;
    }
  }
  if (position < 0 || position >= total) throw InvalidModel(fmt::format("sparse tensor: index {} is outside its {} elements", position, total));
  return position;
}

}  // namespace

Tensor AttributeReader::tensor(const onnx::TensorProto& stub) {
  const TensorFields fields = file_.tensor_fields(stub);
  return fields.external ? external_.load(fields) : decode_tensor(fields, file_.owner);
}

Tensor AttributeReader::sparse_tensor(const onnx::SparseTensorProto& sparse) {
  const Tensor values = tensor(sparse.values()), indices = tensor(sparse.indices());
  if (sparse.dims_size() > static_cast<int>(limits::kRank)) throw InvalidModel("sparse tensor with too many dimensions");
  const Shape dims(sparse.dims().begin(), sparse.dims().end());
  const std::int64_t count = values.size();
  const bool flat = indices.rank() == 1, by_dimension = indices.rank() == 2 && indices.shape()[1] == static_cast<std::int64_t>(dims.size());
  if (values.rank() != 1 || indices.dtype() != DType::kI64 || !(flat || by_dimension) || indices.shape()[0] != count)
    throw InvalidModel("sparse tensor: values must be [n], indices int64 of shape [n] or [n, rank]");
  const std::size_t element = size_of(values.dtype());
  if (static_cast<std::size_t>(elements(dims)) > limits::kSparseDenseBytes / element)
    throw Unsupported(
        fmt::format("a sparse tensor of shape {} is larger than {} MiB when made dense", to_string(dims), limits::kSparseDenseBytes >> 20));
  Tensor dense(values.dtype(), dims);
  auto* to = static_cast<std::byte*>(dense.mutable_data());
  const auto* from = static_cast<const std::byte*>(values.data());
  for (std::int64_t k = 0; k < count; ++k)
    std::memcpy(to + static_cast<std::size_t>(dense_position(indices, dims, k)) * element, from + static_cast<std::size_t>(k) * element, element);
  return dense;
}

void AttributeReader::set(Attributes& into, const onnx::AttributeProto& a) {
  using A = onnx::AttributeProto;
  switch (kind_of(a)) {
    case A::FLOAT:
      return into.set(a.name(), a.f());
    case A::INT:
      return into.set(a.name(), static_cast<std::int64_t>(a.i()));
    case A::STRING:
      return into.set(a.name(), a.s());
    case A::TENSOR:
      return into.set(a.name(), tensor(a.t()));
    case A::SPARSE_TENSOR:
      return into.set(a.name(), sparse_tensor(a.sparse_tensor()));
    case A::FLOATS:
      return into.set(a.name(), std::vector<float>(a.floats().begin(), a.floats().end()));
    case A::INTS:
      return into.set(a.name(), std::vector<std::int64_t>(a.ints().begin(), a.ints().end()));
    case A::STRINGS:
      return into.set(a.name(), std::vector<std::string>(a.strings().begin(), a.strings().end()));
    case A::GRAPH:
      return;
    default:
      throw Unsupported(fmt::format("attribute {} is of a kind that is not supported (number {})", quote(a.name()), static_cast<int>(kind_of(a))));
  }
}

Attributes AttributeReader::read(const onnx::NodeProto& node, const Attributes* bound) {
  Attributes all;
  for (const auto& a : node.attribute()) {
    if (all.has(a.name())) throw InvalidModel(fmt::format("attribute {} stands twice", quote(a.name())));
    if (a.ref_attr_name().empty()) {
      with_context([&] { return fmt::format("attribute {}", quote(a.name())); }, [&] { set(all, a); });
      continue;
    }
    if (!bound) throw InvalidModel(fmt::format("attribute {} refers to a function's attribute outside of a function", quote(a.name())));
    for (const auto& [name, value] : *bound) {
      if (name == a.ref_attr_name()) all.set(a.name(), value);
    }
  }
  return all;
}

}  // namespace tandem
