// Kernels of operators that make each element of the output from the elements at the same place of the operands (after numpy's
// broadcasting): layouts, strides, broadcasting and 16-bit floats are handled here, an operator brings a loop over plain arrays.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/cpu/strided.h"

namespace tandem {

// The type in which elements are computed: f32 for bf16 and f16, u8 (0 or 1) for bool, else the type itself.
DType compute_type(DType storage);

// n neighbouring elements of each operand (null where absent) and of the output, all in their compute types. `out` may be the memory of
// any operand with the output's type; element k of every operand is to be read before element k of `out` is written. The result of an
// element must not depend on n or on its place. Called from several threads.
using MapBody = std::function<void(const void* const* in, void* out, std::int64_t n)>;

// Operands broadcast to out's shape; absent ones have an empty desc. Operands and output may have any layout.
Kernel map_kernel(std::string implementation, const TensorDesc& out, const std::vector<TensorDesc>& in, MapBody body,
                  std::int64_t task_elements = kTaskElements);

// Writes zeros between the channels of neighbouring pixels (TensorDesc::channel_pitch) for those pixels whose last channel lies in the
// range [begin, end) of elements counted in memory order without the gaps. For kernels that go by elements; `data` has desc's type.
void zero_gaps(const TensorDesc& desc, void* data, std::int64_t begin, std::int64_t end);

}  // namespace tandem
