#include "importer/tensor_proto.h"

#include <fmt/format.h>

#include <limits>

#include "importer/mapped_file.h"
#include "importer/tensor_wire.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"
#include "runtime/base/safe_file.h"

namespace tandem {
namespace {

NamedTensor parse(wire::Bytes bytes, const std::shared_ptr<const MappedFile>& file) {
  try {
    const TensorFields fields = read_tensor_fields(bytes);
    if (fields.external) throw InvalidData(fmt::format("tensor {} has external data, which a single tensor cannot have", quote(fields.name)));
    return {std::string(fields.name), decode_tensor(fields, file)};
  } catch (const InvalidModel& e) {  // the data are wrong here, no model
    throw InvalidData(e.message());
  } catch (const Unsupported& e) {
    throw InvalidData(e.message());
  }
}

}  // namespace

NamedTensor parse_tensor(std::span<const std::byte> bytes) { return parse(bytes, nullptr); }

NamedTensor read_tensor_file(const std::filesystem::path& file) {
  return with_context([&] { return fmt::format("file {}", quote(file.string())); },
                      [&] {
                        const auto mapping = MappedFile::open(file, std::numeric_limits<std::int64_t>::max());
                        return parse(mapping->bytes(), mapping);
                      });
}

std::string tensor_header(const std::string& name, const Tensor& tensor) {
  std::string out;
  for (const std::int64_t dim : tensor.shape()) wire::append_integer(out, 1, static_cast<std::uint64_t>(dim));
  wire::append_integer(out, 2, static_cast<std::uint64_t>(dtype_to_onnx(tensor.dtype())));
  wire::append_bytes(out, 8, name);
  return out;
}

std::string serialize_tensor(const std::string& name, const Tensor& tensor) {
  std::string out = tensor_header(name, tensor);
  wire::append_bytes(out, 9, {static_cast<const char*>(tensor.data()), tensor.bytes()});
  return out;
}

void write_tensor_file(const std::filesystem::path& file, const std::string& name, const Tensor& tensor) {
  SafeFile out(file);
  out.write(serialize_tensor(name, tensor));
  out.commit();
}

}  // namespace tandem
