// Copies between layouts and between f32 and bf16: the border between kernels that want different descs.
#pragma once

#include "runtime/ops/op.h"

namespace tandem {

// True when both descs describe the same bytes (dimensions of size 1 do not count), so that no copy is needed.
bool same_memory(const TensorDesc&, const TensorDesc&);
// A kernel with one input `from` and one output `to`: same logical shape; equal types, or any pair of f32, bf16, f16, f64.
Kernel reorder_kernel(const TensorDesc& from, const TensorDesc& to);
// The same at once, on the calling thread.
void reorder(const TensorDesc& from, const void* source, const TensorDesc& to, void* destination);

}  // namespace tandem
