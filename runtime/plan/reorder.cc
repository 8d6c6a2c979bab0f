#include "runtime/plan/reorder.h"

#include "runtime/ops/movement.h"

namespace tandem {
namespace {

StridedCopy copy_of(const TensorDesc& from, const TensorDesc& to) {
  return StridedCopy(to.shape, {from.dtype, from.strides()}, {to.dtype, to.strides()});
}

}  // namespace

bool same_memory(const TensorDesc& a, const TensorDesc& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  const auto x = a.strides(), y = b.strides();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (a.shape[i] != 1 && x[i] != y[i]) return false;
  }
  return a.bytes() == b.bytes();
}

Kernel reorder_kernel(const TensorDesc& from, const TensorDesc& to) { return move_kernel("reorder", {to}, {{0, 0, copy_of(from, to)}}); }

void reorder(const TensorDesc& from, const void* source, const TensorDesc& to, void* destination) { copy_of(from, to).run(source, destination); }

}  // namespace tandem
