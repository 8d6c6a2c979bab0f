#include "runtime/ops/packed_operand.h"

namespace tandem {

PackedOperand::PackedOperand(CpuContext& c, Kernel& kernel, std::size_t operand, std::string key, std::size_t bytes, std::int64_t parts,
                             PackPart pack) {
  if (c.packable(operand)) {
    index_ = static_cast<std::ptrdiff_t>(c.pack(operand, std::move(key), bytes, [parts, pack = std::move(pack)](const Tensor& values, void* to) {
      for (std::int64_t i = 0; i < parts; ++i) pack(values.data(), i, static_cast<std::byte*>(to));
    }));
    return;
  }
  kernel.shared_bytes = bytes;
  kernel.stages.push_back(
      {static_cast<int>(parts), [operand, pack = std::move(pack)](const KernelArgs& k, int part) { pack(k.in[operand], part, k.shared); }});
}

}  // namespace tandem
