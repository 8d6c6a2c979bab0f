// The idx format of MNIST and its kin: big-endian header, then bytes. Plain or gzipped.
#pragma once

#include <string>

#include "runtime/base/tensor.h"

namespace tandem::io {

// Unsigned bytes with 1 to 4 dimensions. Sizes are checked against the data before memory is taken; throws InvalidData with the path.
Tensor read_idx(const std::string& file);

}  // namespace tandem::io
