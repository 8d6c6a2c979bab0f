#include "io/hdf5_handle.h"

namespace tandem::io {
namespace {

bool is_half(hid_t type) {
  std::size_t sign = 0, exponent = 0, exponent_size = 0, mantissa = 0, mantissa_size = 0;
  H5Tget_fields(type, &sign, &exponent, &exponent_size, &mantissa, &mantissa_size);
  return sign == 15 && exponent == 10 && exponent_size == 5 && mantissa == 0 && mantissa_size == 10 && H5Tget_ebias(type) == 15;
}

hid_t half_type() {
  const hid_t t = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(t, 15, 10, 5, 0, 10);
  H5Tset_size(t, 2);
  H5Tset_ebias(t, 15);
  return t;
}

}  // namespace

DType h5_dtype(hid_t type) {
  const std::size_t size = H5Tget_size(type);
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_FLOAT) {
    const H5Id little(H5Tcopy(type), H5Tclose);
    H5Tset_order(little.get(), H5T_ORDER_LE);
    if (H5Tequal(little.get(), H5T_IEEE_F32LE) > 0) return DType::kF32;
    if (H5Tequal(little.get(), H5T_IEEE_F64LE) > 0) return DType::kF64;
    return size == 2 && is_half(little.get()) ? DType::kF16 : DType::kNone;
  }
  if (kind != H5T_INTEGER || H5Tget_precision(type) != 8 * size) return DType::kNone;
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
  switch (size) {
    case 1:
      return is_signed ? DType::kI8 : DType::kU8;
    case 2:
      return is_signed ? DType::kI16 : DType::kU16;
    case 4:
      return is_signed ? DType::kI32 : DType::kU32;
    case 8:
      return is_signed ? DType::kI64 : DType::kU64;
    default:
      return DType::kNone;
  }
}

hid_t h5_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return H5Tcopy(H5T_IEEE_F32LE);
    case DType::kF64:
      return H5Tcopy(H5T_IEEE_F64LE);
    case DType::kF16:
      return half_type();
    case DType::kI8:
      return H5Tcopy(H5T_STD_I8LE);
    case DType::kU8:
      return H5Tcopy(H5T_STD_U8LE);
    case DType::kI16:
      return H5Tcopy(H5T_STD_I16LE);
    case DType::kU16:
      return H5Tcopy(H5T_STD_U16LE);
    case DType::kI32:
      return H5Tcopy(H5T_STD_I32LE);
    case DType::kU32:
      return H5Tcopy(H5T_STD_U32LE);
    case DType::kI64:
      return H5Tcopy(H5T_STD_I64LE);
    case DType::kU64:
      return H5Tcopy(H5T_STD_U64LE);
    case DType::kBool:
    case DType::kBF16:
    case DType::kNone:
      break;
  }
  return -1;
}

}  // namespace tandem::io
