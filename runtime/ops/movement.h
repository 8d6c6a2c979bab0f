// Kernels of operators that only move elements: lists of strided copies. They care about the width of an element, not its type.
#pragma once

#include <string>
#include <vector>

#include "runtime/cpu/strided_copy.h"
#include "runtime/ops/op.h"

namespace tandem {

// One copy from an operand, or from a value of the kernel's own (a fill: all source strides 0), to an output.
struct Move {
  std::size_t input = 0, output = 0;
  StridedCopy copy;
  Tensor value = {};  // not empty: the source instead of the operand
};

// The whole of a tensor as one side of a copy.
StridedSide side_of(const TensorDesc&);
// Fills a box of output `output` with zeros; `to` as in StridedCopy.
Move zero_move(std::size_t output, const Shape& box, const StridedSide& to);
// Does all moves (they write different elements; one to an absent output must not be among them) and writes zeros to what lies between
// the channels of channels-last outputs. A move from an operand that lies in the output's own memory (Kernel::in_place) is nothing.
Kernel move_kernel(std::string implementation, const std::vector<TensorDesc>& outputs, std::vector<Move> moves);

// Copies n neighbouring elements, f32 to bf16 and back where the types differ (a constant operand beside bf16 activations).
void copy_elements(DType from, const void* source, DType to, void* destination, std::int64_t n);

}  // namespace tandem
