// Element types, and the two 16-bit float formats as plain bits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tandem {

// kF16 exists at the border only (files, graph inputs and outputs, Cast): inside a graph half-precision values are widened to f32.
enum class DType : std::uint8_t { kNone, kF32, kBF16, kF64, kF16, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kBool };

std::size_t size_of(DType);       // bytes of one element; 0 for kNone
std::string_view name_of(DType);  // ONNX's lower-case names: "float32" "bfloat16" "float64" "float16" "int8" ... "bool"
bool is_float(DType);             // f32, bf16, f64, f16

// Storage of one bfloat16 / float16 element. Conversions round to nearest even and keep NaN (as a quiet NaN).
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float v) {
    const auto u = std::bit_cast<std::uint32_t>(v);
    bits = (u & 0x7fffffffu) > 0x7f800000u ? static_cast<std::uint16_t>((u >> 16) | 0x40)
                                           : static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};
struct Float16 {
  std::uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float v);
  explicit operator float() const;
};

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return DType::kF32;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return DType::kBF16;
  else if constexpr (std::is_same_v<T, double>)
    return DType::kF64;
  else if constexpr (std::is_same_v<T, Float16>)
    return DType::kF16;
  else if constexpr (std::is_same_v<T, std::int8_t>)
    return DType::kI8;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return DType::kU8;
  else if constexpr (std::is_same_v<T, std::int16_t>)
    return DType::kI16;
  else if constexpr (std::is_same_v<T, std::uint16_t>)
    return DType::kU16;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return DType::kI32;
  else if constexpr (std::is_same_v<T, std::uint32_t>)
    return DType::kU32;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return DType::kI64;
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    return DType::kU64;
  else if constexpr (std::is_same_v<T, bool>)
    return DType::kBool;
  else
    return DType::kNone;
}

// A number as another C++ type; the 16-bit floats go through float.
template <class To, class From>
To number_as(From v) {
  if constexpr (std::is_same_v<To, From>)
    return v;
  else if constexpr (std::is_arithmetic_v<From> && std::is_arithmetic_v<To>)
    return static_cast<To>(v);
  else
    return static_cast<To>(static_cast<float>(v));
}

// Calls f with an unsigned integer of that many bytes (1, 2, 4 or 8): a tag for code that only moves elements.
template <class F>
decltype(auto) dispatch_width(std::size_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

// Calls f with a value of the C++ type of `t` (a tag: only its type matters). All types but kNone.
template <class F>
decltype(auto) dispatch(DType t, F&& f) {
  switch (t) {
    case DType::kBF16:
      return f(BFloat16{});
    case DType::kF64:
      return f(double{});
    case DType::kF16:
      return f(Float16{});
    case DType::kI8:
      return f(std::int8_t{});
    case DType::kU8:
      return f(std::uint8_t{});
    case DType::kI16:
      return f(std::int16_t{});
    case DType::kU16:
      return f(std::uint16_t{});
    case DType::kI32:
      return f(std::int32_t{});
    case DType::kU32:
      return f(std::uint32_t{});
    case DType::kI64:
      return f(std::int64_t{});
    case DType::kU64:
      return f(std::uint64_t{});
    case DType::kBool:
      return f(bool{});
    case DType::kNone:
    case DType::kF32:
      break;
  }
  return f(float{});
}

}  // namespace tandem
