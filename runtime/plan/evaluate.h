// Runs one node on host tensors: constant folding, and the tests of single operators.
#pragma once

#include <vector>

#include "runtime/cpu/cpu_info.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/op.h"

namespace tandem {

// The node's outputs, plain. All operands must be known() and the node inferred. Runs on the calling thread.
std::vector<Tensor> evaluate(const Graph&, const Node&, const CpuInfo& cpu = {});

// The same with operand values given by the caller (empty Tensor: absent), and the layout in which operands and outputs are handed to the
// kernel: kChannelsLast needs a family with that rule (or kAny) and is applied to data operands and outputs of rank >= 3, with
// `extra_pitch` unused elements after each pixel's channels. For tests.
struct EvaluateOptions {
  Layout layout = Layout::kPlain;
  std::int64_t extra_pitch = 0;
  Precision precision = Precision::kF32;
  bool store_bf16 = false;     // hand data operands and outputs over as bf16 (families with Bf16Rule::kStore or kProduct)
  bool widen_outputs = false;  // but outputs as f32 (Bf16Rule::kProduct)
  CpuInfo cpu;
};
std::vector<Tensor> evaluate(const Graph&, const Node&, const std::vector<Tensor>& operands, const EvaluateOptions&);

}  // namespace tandem
