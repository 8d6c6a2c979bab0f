// A TensorProto as it lies in the file, and its way to a Tensor. Nothing is copied before type, dimensions and size agree.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "importer/mapped_file.h"
#include "importer/wire.h"
#include "runtime/base/dtype_onnx.h"
#include "runtime/base/tensor.h"

namespace tandem {

struct TensorFields {
  std::string_view name;
  Shape dims;
  std::int64_t data_type = 0;  // TensorProto.DataType
  bool external = false;
  std::vector<std::pair<std::string_view, std::string_view>> external_data;  // key, value
  bool has_raw = false;
  wire::Bytes raw;
  wire::Bytes body;  // the whole message: typed data are read from here
};

// Throws InvalidModel when the message is malformed or has more than limits::kRank dimensions.
TensorFields read_tensor_fields(wire::Bytes body);

// Elements and bytes that the dimensions ask for; throws InvalidModel where one is negative or the product too large.
std::size_t tensor_bytes(const TensorFields&);

// The tensor of a message with its data inside. Small raw data are copied; large ones that lie in a mapped
// file stay there, deferred (runtime/base/tensor.h), and their pages let go when their reader is done. With no file everything is copied. kF16 and
// kBF16 stay what they are. Throws naming the tensor.
Tensor decode_tensor(const TensorFields&, const std::shared_ptr<const MappedFile>& file);

// The same with the bytes given (external data), whose size must be tensor_bytes().
Tensor tensor_from_raw(const TensorFields&, wire::Bytes raw, const std::shared_ptr<const MappedFile>& file);

// float16 and bfloat16 to float32, large ones deferred; other types as they are.
Tensor widened(const Tensor&);

}  // namespace tandem
