#include "runtime/base/dtype_onnx.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "runtime/base/error.h"

namespace tandem {
namespace {

// By number; types that are not supported by name alone.
struct Entry {
  std::string_view name;
  DType type = DType::kNone;
};
constexpr Entry kTypes[] = {{"undefined"},
                            {"float32", DType::kF32},
                            {"uint8", DType::kU8},
                            {"int8", DType::kI8},
                            {"uint16", DType::kU16},
                            {"int16", DType::kI16},
                            {"int32", DType::kI32},
                            {"int64", DType::kI64},
                            {"string"},
                            {"bool", DType::kBool},
                            {"float16", DType::kF16},
                            {"float64", DType::kF64},
                            {"uint32", DType::kU32},
                            {"uint64", DType::kU64},
                            {"complex64"},
                            {"complex128"},
                            {"bfloat16", DType::kBF16},
                            {"float8e4m3fn"},
                            {"float8e4m3fnuz"},
                            {"float8e5m2"},
                            {"float8e5m2fnuz"},
                            {"uint4"},
                            {"int4"},
                            {"float4e2m1"},
                            {"float8e8m0"}};
constexpr auto kCount = static_cast<std::int64_t>(std::size(kTypes));

}  // namespace

DType dtype_from_onnx(std::int64_t number) {
  const bool known = number > 0 && number < kCount;
  if (known && kTypes[number].type != DType::kNone) return kTypes[number].type;
  throw Unsupported(
      fmt::format("element type {} is not supported; export the model with float32, float16, bfloat16, float64, integer or bool tensors",
                  known ? std::string(kTypes[number].name) : fmt::format("number {}", number)));
}

std::int64_t dtype_to_onnx(DType dtype) {
  for (std::int64_t number = 1; number < kCount; ++number) {
    if (kTypes[number].type == dtype) return number;
  }
  return 0;
}

}  // namespace tandem
