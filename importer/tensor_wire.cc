#include "importer/tensor_wire.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "importer/limits.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem {
namespace {

static_assert(std::endian::native == std::endian::little, "raw data of ONNX files are little-endian");

// Field numbers of TensorProto.
constexpr std::uint32_t kDims = 1, kDataType = 2, kSegment = 3, kFloatData = 4, kInt32Data = 5, kInt64Data = 7, kName = 8, kRawData = 9,
                        kDoubleData = 10, kUint64Data = 11, kExternalData = 13, kDataLocation = 14;

void add_dim(TensorFields& t, std::uint64_t dim) {
  if (t.dims.size() >= limits::kRank) throw InvalidModel(fmt::format("tensor {} has more than {} dimensions", quote(t.name), limits::kRank));
  t.dims.push_back(static_cast<std::int64_t>(dim));
}

std::pair<std::string_view, std::string_view> read_entry(wire::Bytes message) {
  std::pair<std::string_view, std::string_view> entry;
  wire::Reader reader(message);
  for (wire::Field field; reader.next(field);) {
    if (field.type != wire::Type::kBytes) continue;
    if (field.number == 1) entry.first = field.text();
    if (field.number == 2) entry.second = field.text();
  }
  return entry;
}

// Which typed field holds a type's elements (onnx.proto, TensorProto).
std::uint32_t typed_field(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return kFloatData;
    case DType::kF64:
      return kDoubleData;
    case DType::kI64:
      return kInt64Data;
    case DType::kU32:
    case DType::kU64:
      return kUint64Data;
    default:
      return kInt32Data;
  }
}

// Fills a tensor from typed data, element by element, in packed and unpacked form.
class TypedFill {
 public:
  TypedFill(const TensorFields& fields, DType dtype)
      : fields_(fields), number_(typed_field(dtype)), fixed_(number_ == kFloatData || number_ == kDoubleData) {}

  // Walks all elements; `store` gets (index, varint or raw bits). Returns how many there are, at most `limit` + 1.
  template <class Store>
  std::size_t each(std::size_t limit, Store&& store) const {
    const wire::Type width = number_ == kFloatData ? wire::Type::kFixed32 : wire::Type::kFixed64;
    std::size_t count = 0;
    wire::Reader reader(fields_.body);
    for (wire::Field field; count <= limit && reader.next(field);) {
      if (field.number != number_) continue;
      if (field.type == wire::Type::kBytes) {
        count = packed(field.bytes, count, limit, store);
      } else if (fixed_ ? field.type == width : field.type == wire::Type::kVarint) {
        if (count < limit) store(count, fixed_ ? bits(field.bytes) : field.varint);
        ++count;
      }
    }
    return count;
  }

 private:
  static std::uint64_t bits(wire::Bytes bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  template <class Store>
  std::size_t packed(wire::Bytes bytes, std::size_t count, std::size_t limit, Store&& store) const {
    const std::size_t width = number_ == kFloatData ? 4 : 8;
    if (fixed_ && bytes.size() % width != 0) throw InvalidModel(fmt::format("tensor {}: its typed data are cut short", quote(fields_.name)));
    wire::Reader reader(bytes);
    for (std::size_t at = 0; count <= limit && (fixed_ ? at < bytes.size() : !reader.done()); at += width, ++count) {
      const std::uint64_t value = fixed_ ? bits(bytes.subspan(at, width)) : reader.varint();
      if (count < limit) store(count, value);
    }
    return count;
  }

  const TensorFields& fields_;
  const std::uint32_t number_;
  const bool fixed_;
};

[[noreturn]] void out_of_range(const TensorFields& fields, DType dtype, std::int64_t value) {
  throw InvalidModel(fmt::format("tensor {}: element {} does not fit {}", quote(fields.name), value, name_of(dtype)));
}

template <class T>
void store_element(const TensorFields& fields, DType dtype, T* to, std::uint64_t bits) {
  const auto value = static_cast<std::int64_t>(bits);
  if constexpr (std::is_same_v<T, float>) {
    *to = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    *to = std::bit_cast<double>(bits);
  } else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    if (value < 0 || value > 0xffff) out_of_range(fields, dtype, value);
    to->bits = static_cast<std::uint16_t>(bits);
  } else if constexpr (std::is_same_v<T, bool>) {
    *to = bits != 0;
  } else {
    *to = static_cast<T>(bits);
    if (static_cast<std::int64_t>(*to) != value) out_of_range(fields, dtype, value);
  }
}

Tensor decode_typed(const TensorFields& fields, DType dtype) {
  const std::size_t wanted = static_cast<std::size_t>(elements(fields.dims));
  const TypedFill fill(fields, dtype);
  const std::size_t found = fill.each(wanted, [](std::size_t, std::uint64_t) {});
  if (found != wanted) {
    throw InvalidModel(fmt::format("tensor {} of shape {} needs {} elements, the file holds {}", quote(fields.name), to_string(fields.dims), wanted,
                                   found > wanted ? "more" : std::to_string(found)));
  }
  Tensor tensor(dtype, fields.dims);
  dispatch(dtype, [&](auto tag) {
    auto* to = tensor.as_mutable<decltype(tag)>().data();
    fill.each(wanted, [&](std::size_t i, std::uint64_t bits) { store_element(fields, dtype, to + i, bits); });
  });
  return tensor;
}

// What is larger stays in the file until somebody reads it.
constexpr std::size_t kDeferredBytes = 64u << 10;

Tensor in_file(DType dtype, const Shape& shape, wire::Bytes raw, const std::shared_ptr<const MappedFile>& file) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(raw.data()) % size_of(dtype) == 0;
  const bool large = raw.size() >= kDeferredBytes;
  const auto make = [=] {
    file->check_size();
    if (aligned && large) {
      const auto done = [file, raw](const void*) { MappedFile::let_go(raw); };
      return Tensor::view(dtype, shape, raw.data(), std::shared_ptr<const void>(raw.data(), done));
    }
    Tensor copy(dtype, shape);
    std::memcpy(copy.mutable_data(), raw.data(), raw.size());
    if (large) MappedFile::let_go(raw);
    return copy;
  };
  return large ? Tensor::deferred(dtype, shape, make) : make();
}

Tensor widen(const Tensor& tensor) {
  Tensor wide(DType::kF32, tensor.shape());
  float* to = wide.as_mutable<float>().data();
  if (tensor.dtype() == DType::kF16) {
    for (const Float16 v : tensor.as<Float16>()) *to++ = static_cast<float>(v);
  } else {
    for (const BFloat16 v : tensor.as<BFloat16>()) *to++ = static_cast<float>(v);
  }
  return wide;
}

}  // namespace

TensorFields read_tensor_fields(wire::Bytes body) {
  TensorFields t;
  t.body = body;
  wire::Reader reader(body);
  for (wire::Field field; reader.next(field);) {
    const bool bytes = field.type == wire::Type::kBytes, varint = field.type == wire::Type::kVarint;
    if (field.number == kDims && varint) add_dim(t, field.varint);
    if (field.number == kDims && bytes) {
      for (wire::Reader packed(field.bytes); !packed.done();) add_dim(t, packed.varint());
    }
    if (field.number == kDataType && varint) t.data_type = static_cast<std::int32_t>(field.varint);
    if (field.number == kSegment) throw Unsupported(fmt::format("tensor {} is stored in segments, which no exporter writes", quote(t.name)));
    if (field.number == kName && bytes) t.name = field.text();
    if (field.number == kDataLocation && varint) t.external = field.varint == 1;
    if (field.number == kExternalData && bytes) {
      if (t.external_data.size() >= 16) throw InvalidModel(fmt::format("tensor {} has more than 16 external_data entries", quote(t.name)));
      t.external_data.push_back(read_entry(field.bytes));
    }
    if (field.number == kRawData && bytes) {
      t.has_raw = true;
      t.raw = field.bytes;
    }
  }
  if (t.name.size() > limits::kNameBytes) throw InvalidModel(fmt::format("the name of a tensor has {} bytes: {}", t.name.size(), quote(t.name)));
  return t;
}

std::size_t tensor_bytes(const TensorFields& fields) {
  for (const std::int64_t dim : fields.dims) {
    if (dim < 0) throw InvalidModel(fmt::format("tensor {} has a negative dimension in its shape {}", quote(fields.name), to_string(fields.dims)));
  }
  const std::size_t element = size_of(dtype_from_onnx(fields.data_type));
  const std::int64_t count = elements(fields.dims);
  if (count > std::int64_t{1} << 48)
    throw InvalidModel(fmt::format("tensor {} of shape {} is too large", quote(fields.name), to_string(fields.dims)));
  return static_cast<std::size_t>(count) * element;
}

Tensor tensor_from_raw(const TensorFields& fields, wire::Bytes raw, const std::shared_ptr<const MappedFile>& file) {
  const DType dtype = dtype_from_onnx(fields.data_type);
  const std::size_t wanted = tensor_bytes(fields);
  if (raw.size() != wanted) {
    throw InvalidModel(fmt::format("tensor {} of shape {} ({}) needs {} bytes, the file holds {}", quote(fields.name), to_string(fields.dims),
                                   name_of(dtype), wanted, raw.size()));
  }
  if (dtype != DType::kBool && file && wanted > 0) return in_file(dtype, fields.dims, raw, file);
  Tensor tensor(dtype, fields.dims);
  if (dtype == DType::kBool) {  // any other bit pattern in a bool is undefined behaviour
    auto* to = static_cast<unsigned char*>(tensor.mutable_data());
    for (std::size_t i = 0; i < wanted; ++i) to[i] = raw[i] != std::byte{0};
  } else if (wanted > 0) {
    std::memcpy(tensor.mutable_data(), raw.data(), wanted);
  }
  return tensor;
}

Tensor decode_tensor(const TensorFields& fields, const std::shared_ptr<const MappedFile>& file) {
  return with_context([&] { return fmt::format("tensor {}", quote(fields.name)); },
                      [&] {
                        const DType dtype = dtype_from_onnx(fields.data_type);
                        tensor_bytes(fields);
                        return fields.has_raw ? tensor_from_raw(fields, fields.raw, file) : decode_typed(fields, dtype);
                      });
}

Tensor widened(const Tensor& tensor) {
  if (tensor.dtype() != DType::kF16 && tensor.dtype() != DType::kBF16) return tensor;
  if (tensor.bytes() < kDeferredBytes) return widen(tensor);
  return Tensor::deferred(
      DType::kF32, tensor.shape(), [tensor] { return widen(tensor.made()); }, tensor.making_bytes());
}

}  // namespace tandem
