// Dropout as in inference: the operand, and a mask that keeps everything. Random masks belong to training (training_dropout.cc).
#include <fmt/format.h>

#include "runtime/graph/gradient.h"
#include "runtime/ops/families.h"
#include "runtime/ops/movement.h"

namespace tandem {
namespace {

double single(const Tensor& t, const char* what) {
  if (t.size() != 1) throw InvalidModel(fmt::format("{} must be one value, has shape {}", what, to_string(t.shape())));
  return t.to_doubles()[0];
}

void infer(InferContext& c) {
  const bool training = c.has_input(2) && single(c.host(2), "training_mode") != 0;
  if (training && (c.has_input(1) ? single(c.host(1), "ratio") : 0.5) != 0) {
    throw Unsupported("training_mode is on and masks are random; set it to false (or the ratio to 0), or export the network for inference");
  }
  c.set_output(0, c.dtype(0), c.shape(0));
  c.set_output(1, DType::kBool, c.shape(0));
}

Kernel cpu(CpuContext& c) {
  std::vector<Move> moves;
  if (c.has_output(0)) moves.push_back({0, 0, StridedCopy(c.out[0].shape, side_of(c.in[0]), side_of(c.out[0]))});
  if (c.has_output(1)) {
    const StridedSide all{DType::kBool, std::vector<std::int64_t>(c.out[1].shape.size(), 0)};
    moves.push_back({0, 1, StridedCopy(c.out[1].shape, all, side_of(c.out[1])), Tensor::scalar(true)});
  }
  Kernel k = move_kernel("plain:dropout", c.out, std::move(moves));
  k.in_place = 1;
  return k;
}

}  // namespace

std::span<const OpDef> dropout_ops() {
  static const OpDef ops[] = {
      {.name = "Dropout",
       .max_inputs = 3,
       .max_outputs = 2,
       .infer = infer,
       .cpu = cpu,
       .host_inputs = 0b110,
       .rows = rows_of_first,
       .layout = LayoutRule::kAny,
       .bf16 = Bf16Rule::kStore,
       .gradient = [](GradientContext& g) { g.set(0, g.dy()); }},
  };
  return ops;
}

}  // namespace tandem
