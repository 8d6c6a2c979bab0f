#include "runtime/ops/movement.h"

#include <algorithm>
#include <cstring>

namespace tandem {
namespace {

void add_channel_padding(std::size_t output, const TensorDesc& d, std::vector<Move>& moves) {
  if (d.layout != Layout::kChannelsLast || d.channel_pitch == d.shape[1] || d.size() == 0) return;
  Shape box = d.shape;
  box[1] = d.channel_pitch - d.shape[1];
  moves.push_back(zero_move(output, box, {d.dtype, d.strides(), d.shape[1]}));
}

}  // namespace

StridedSide side_of(const TensorDesc& d) { return {d.dtype, d.strides(), 0}; }

Move zero_move(std::size_t output, const Shape& box, const StridedSide& to) {
  return {0, output, StridedCopy(box, {to.dtype, std::vector<std::int64_t>(box.size(), 0), 0}, to), Tensor(to.dtype, {})};
}

Kernel move_kernel(std::string implementation, const std::vector<TensorDesc>& outputs, std::vector<Move> moves) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i]) add_channel_padding(i, outputs[i], moves);
  }
  std::vector<int> last_task;  // of each move, plus one
  int tasks = 0;
  for (const Move& m : moves) last_task.push_back(tasks += m.copy.tasks());
  auto run = [moves = std::move(moves), last_task](const KernelArgs& k, int task) {
    const auto i = static_cast<std::size_t>(std::upper_bound(last_task.begin(), last_task.end(), task) - last_task.begin());
    const Move& m = moves[i];
    const void* source = m.value ? m.value.data() : k.in[m.input];
    if (source != k.out[m.output]) m.copy.run_task(source, k.out[m.output], i == 0 ? task : task - last_task[i - 1]);
  };
  return Kernel::single(std::move(implementation), tasks, std::move(run));
}

void copy_elements(DType from, const void* source, DType to, void* destination, std::int64_t n) {
  if (from == to) {
    if (n > 0) std::memcpy(destination, source, static_cast<std::size_t>(n) * size_of(from));
  } else if (from == DType::kF32) {
    for (std::int64_t i = 0; i < n; ++i) static_cast<BFloat16*>(destination)[i] = BFloat16(static_cast<const float*>(source)[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) static_cast<float*>(destination)[i] = static_cast<float>(static_cast<const BFloat16*>(source)[i]);
  }
}

}  // namespace tandem
