// Weights in a kernel's own layout: packed once where they are constant, once a step where they are a parameter, else by a first stage of
// every run.
#pragma once

#include "runtime/ops/op.h"

namespace tandem {

class PackedOperand {
 public:
  // Packs one part of the operand's plain values to its place in `to`. Parts may be packed in any order and at the same time.
  using PackPart = std::function<void(const void* values, std::int64_t part, std::byte* to)>;
  PackedOperand() = default;
  // Asks for `bytes`, of all parts together, from the context (`key` as in Pack) or takes them as the kernel's shared memory and adds the
  // stage: at most one operand of a kernel, before its other stages.
  PackedOperand(CpuContext&, Kernel&, std::size_t operand, std::string key, std::size_t bytes, std::int64_t parts, PackPart);
  const std::byte* data(const KernelArgs& k) const { return index_ < 0 ? k.shared : static_cast<const std::byte*>(k.packed[index_]); }

 private:
  std::ptrdiff_t index_ = -1;  // into KernelArgs::packed; -1: shared
};

}  // namespace tandem
