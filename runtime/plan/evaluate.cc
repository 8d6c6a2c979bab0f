#include "runtime/plan/evaluate.h"

#include <fmt/format.h>

#include <cstring>

#include "runtime/ops/op_table.h"
#include "runtime/plan/reorder.h"

namespace tandem {
namespace {

struct Buffer {  // 64-byte aligned bytes
  explicit Buffer(std::size_t bytes) : tensor(DType::kU8, {static_cast<std::int64_t>(bytes)}) {}
  std::byte* data() { return static_cast<std::byte*>(tensor.mutable_data()); }
  Tensor tensor;
};

TensorDesc kernel_desc(const TensorDesc& plain, bool data, const EvaluateOptions& options) {
  TensorDesc d = plain;
  if (!data) return d;
  if (options.layout == Layout::kChannelsLast && d.rank() >= 3) {
    d.layout = Layout::kChannelsLast;
    d.channel_pitch = d.shape[1] + options.extra_pitch;
  }
  if (options.store_bf16 && d.dtype == DType::kF32) d.dtype = DType::kBF16;
  return d;
}

void run(const Kernel& kernel, KernelArgs args) {
  Buffer scratch(kernel.scratch_bytes), shared(kernel.shared_bytes);
  args.scratch = scratch.data();
  args.shared = shared.data();
  for (const Stage& stage : kernel.stages) {
    for (int t = 0; t < stage.tasks; ++t) stage.run(args, t);
  }
}

}  // namespace

std::vector<Tensor> evaluate(const Graph& graph, const Node& node, const CpuInfo& cpu) {
  std::vector<Tensor> operands;
  for (const ValueId in : node.inputs) operands.push_back(in == kNoValue ? Tensor() : graph.value(in).constant);
  EvaluateOptions options;
  options.cpu = cpu;
  return evaluate(graph, node, operands, options);
}

std::vector<Tensor> evaluate(const Graph& graph, const Node& node, const std::vector<Tensor>& operands, const EvaluateOptions& options) {
  const OpDef& op = need_op(node.op);
  if (op.view) return {operands[0].reshaped(graph.value(node.outputs[0]).shape)};
  if (!op.cpu) throw Unsupported(fmt::format("{} has no CPU kernel", node.op));
  std::vector<TensorDesc> in, out;
  std::vector<Buffer> held;
  held.reserve(operands.size() + node.outputs.size());
  std::vector<const void*> in_pointers;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) {
      in.emplace_back();
      in_pointers.push_back(nullptr);
      continue;
    }
    const TensorDesc plain = TensorDesc::plain(operands[i].dtype(), operands[i].shape());
    const bool data = i < 32 && (op.data_inputs >> i & 1) && !graph.value(node.inputs[i]).known();
    in.push_back(kernel_desc(plain, data, options));
    held.emplace_back(in.back().bytes());
    reorder(plain, operands[i].made().data(), in.back(), held.back().data());
    in_pointers.push_back(held.back().data());
  }
  std::vector<void*> out_pointers;
  EvaluateOptions outputs = options;
  outputs.store_bf16 = options.store_bf16 && !options.widen_outputs;
  for (const ValueId id : node.outputs) {
    if (id == kNoValue) {
      out.emplace_back();
      out_pointers.push_back(nullptr);
      continue;
    }
    out.push_back(kernel_desc(TensorDesc::plain(graph.value(id).dtype, graph.value(id).shape), true, outputs));
    held.emplace_back(out.back().bytes());
    out_pointers.push_back(held.back().data());
  }
  CpuContext context(graph, node, in, out, options.precision, options.cpu);
  const Kernel kernel = op.cpu(context);
  std::vector<Buffer> packed;
  std::vector<const void*> packed_pointers;
  for (const Pack& p : context.packs()) {
    packed.emplace_back(p.bytes);
    p.fill(graph.value(p.operand).constant.made(), packed.back().data());
    packed_pointers.push_back(packed.back().data());
  }
  run(kernel, {in_pointers.data(), out_pointers.data(), packed_pointers.data(), nullptr, nullptr});
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!out[i]) {
      results.emplace_back();
      continue;
    }
    results.emplace_back(graph.value(node.outputs[i]).dtype, out[i].shape);
    reorder(out[i], out_pointers[i], TensorDesc::plain(results.back().dtype(), out[i].shape), results.back().mutable_data());
  }
  return results;
}

}  // namespace tandem
