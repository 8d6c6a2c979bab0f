// A plan: how a graph is computed for one set of input shapes, in one precision. Everything is decided before the first run: layouts,
// fused operators, prepared kernels, where each buffer lies in one arena. Immutable after planning and shared by all replicas.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/infer.h"
#include "runtime/ops/op.h"

namespace tandem {

// Where an operand or output of a step lies.
struct Place {
  enum class Kind : std::uint8_t { kNone, kArena, kInput, kOutput, kConstant } kind = Kind::kNone;
  std::size_t at = 0;  // arena: byte offset; input, output: index of the graph's; constant: index into Plan::constants
};

struct Step {
  std::string node;  // describe() of the node, or "reorder of "x""
  std::string op;
  Kernel kernel;
  std::vector<Place> in, out;
  std::vector<TensorDesc> in_descs, out_descs;
  std::size_t first_pack = 0;  // its packed operands in Plan::packs are [first_pack, first_pack + pack_count)
  std::size_t pack_count = 0;
  std::size_t shared_at = 0;  // arena offset of Kernel::shared_bytes
};

// A packed operand of a plan. `key` names it across plans of the same graph; empty: this plan's own.
struct PlannedPack {
  std::string key;
  std::size_t bytes = 0;
  std::int32_t input = -1;  // the graph input that is packed, once a step; -1: a constant, packed once
  std::function<void(const Tensor& operand, void* destination)> fill;
  Tensor operand;                // let go once it was packed
  std::size_t making_bytes = 0;  // what making the operand takes for the moment, beyond `bytes`
};

// For reports.
struct PlannedBuffer {
  std::string value;
  std::size_t bytes = 0;
  std::size_t first_step = 0, last_step = 0;
};

struct PlanOptions {
  Precision precision = Precision::kF32;
  bool passes = true;  // false: no fusion, no folded weights, no cancelled transposes
  // Outputs lie in the arena until the end of their segment (Plan::outputs_at) instead of going to the caller's memory.
  bool outputs_in_arena = false;
};

// A place where the shards of a batch meet: what each has in `part` is merged, the result goes to each one's `merged` (both in the arena).
struct SyncPoint {
  std::size_t step = 0;  // copies part to merged: a shard alone is done with it
  Sync kind = Sync::kNone;
  TensorDesc desc;
  std::size_t part = 0, merged = 0;  // arena offsets
};

struct KeptOutput {
  std::size_t at = 0;       // arena offset
  std::size_t segment = 0;  // at whose end it is there
};

struct Plan {
  PlanOptions options;
  std::vector<TensorDesc> inputs, outputs;  // plain, as the caller hands them over
  std::vector<Step> steps;
  std::vector<PlannedPack> packs;
  std::vector<Tensor> constants;
  std::size_t arena_bytes = 0;    // activations and shared workspaces, one for each concurrent run
  std::size_t scratch_bytes = 0;  // one for each worker
  std::size_t max_operands = 0;
  // Steps [end of the segment before, end) run without looking at other shards. At each end but the last there are syncs.
  std::vector<std::size_t> segment_ends;
  std::vector<SyncPoint> syncs;        // in the order of steps; each is merged before the next
  std::vector<KeptOutput> outputs_at;  // with PlanOptions::outputs_in_arena
  std::vector<PlannedBuffer> buffers;  // largest first
  std::vector<std::string> fused;      // what the passes did, one line each
  std::size_t constant_bytes() const;  // constants that steps read unpacked
};

// Throws Unsupported where this CPU lacks what the precision is made of.
void check_precision(Precision, const CpuInfo&);

// Plans `graph` for `binding` on the CPU. Throws InvalidModel or Unsupported with node and reason.
Plan make_plan(const Graph& graph, const InputBinding& binding, const PlanOptions& options, const CpuInfo& cpu);

}  // namespace tandem
