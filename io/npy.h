// numpy's .npy files, format versions 1 to 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "runtime/base/tensor.h"

namespace tandem::io {

// All of Tensor's types that numpy has (bool, integers, float16, float32, float64), little- or big-endian, C or Fortran order; the result is
// row-major and owns its bytes. Type, shape and length must agree before memory is taken. Throws InvalidData.
Tensor parse_npy(std::span<const std::byte> bytes);
// From a source of `size` bytes that are read from front to back.
Tensor read_npy(std::int64_t size, const std::function<void(void* to, std::size_t bytes)>& read);
Tensor read_npy(const std::string& file);

// The file's bytes. bfloat16, which numpy lacks, is written as float32.
std::string npy_bytes(const Tensor& tensor);
// Written beside, synced and renamed.
void write_npy(const std::string& file, const Tensor& tensor);

}  // namespace tandem::io
