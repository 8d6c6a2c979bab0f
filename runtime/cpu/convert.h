// Conversions between compute types (map.h) of plain arrays, within operators that compute in another type than their operands'.
#pragma once

#include <cstdint>

#include "runtime/base/dtype.h"

namespace tandem {

using ConvertFn = void (*)(const void* from, void* to, std::int64_t n);

// Integers to smaller integers keep the low bits; floats to integers truncate towards zero and saturate, NaN gives 0 (the standard leaves
// both open); anything but zero (NaN too) is true; float and double round to nearest even. `from` and `to` are compute types; kBool as
// target gives u8 of 0 and 1.
ConvertFn converter(DType from, DType to);

}  // namespace tandem
