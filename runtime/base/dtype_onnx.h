// ONNX's numbers of the element types (TensorProto.DataType): in files, and in the attributes of Cast and its kind.
#pragma once

#include <cstdint>

#include "runtime/base/dtype.h"

namespace tandem {

// Throws Unsupported naming the type for strings, complex numbers and types below 16 bits that are no int8 or uint8.
DType dtype_from_onnx(std::int64_t number);
std::int64_t dtype_to_onnx(DType);  // 0 for kNone

}  // namespace tandem
