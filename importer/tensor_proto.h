// Single tensors in files: ONNX's TensorProto, the `.pb` of test data and of `run`. float16 and bfloat16 stay what they are.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "runtime/base/tensor.h"

namespace tandem {

struct NamedTensor {
  std::string name;  // may be empty
  Tensor tensor;
};

// Every storage form but external data. Dimensions, type and size must agree before memory is taken. The result owns its bytes or the mapping.
// Throws InvalidData, with the file as context.
NamedTensor read_tensor_file(const std::filesystem::path& file);
NamedTensor parse_tensor(std::span<const std::byte> bytes);

// Raw little-endian data. The file is written beside, synced and renamed; an existing one is never opened.
void write_tensor_file(const std::filesystem::path& file, const std::string& name, const Tensor& tensor);
std::string serialize_tensor(const std::string& name, const Tensor& tensor);
// The same without the data, for tensors whose data lie elsewhere.
std::string tensor_header(const std::string& name, const Tensor& tensor);

}  // namespace tandem
