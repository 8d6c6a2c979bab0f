// The planner's working form, between graph and plan: nodes in order with physical tensors ("slots") instead of values, and the copies
// between layouts and types where neighbours disagree. Internal to runtime/plan.
#pragma once

#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace tandem {

struct Slot {
  TensorDesc desc;
  ValueId value = kNoValue;
  Place place;              // kNone until placed
  std::int32_t alias = -1;  // another slot whose memory this one is; roots have -1
};

struct ProgramItem {
  const Node* node = nullptr;         // null: a reorder from in[0] to out[0]
  std::vector<std::int32_t> in, out;  // slots; -1 where absent
};

struct Program {
  std::vector<Slot> slots;
  std::vector<ProgramItem> items;
  std::vector<std::int32_t> kept;  // slots of the graph's outputs, with PlanOptions::outputs_in_arena
  std::size_t root(std::int32_t slot) const {
    while (slots[static_cast<std::size_t>(slot)].alias >= 0) slot = slots[static_cast<std::size_t>(slot)].alias;
    return static_cast<std::size_t>(slot);
  }
};

// Chooses layout and type of every tensor. The graph is inferred; its nodes must outlive the program. Graph outputs are placed.
Program lay_out(const Graph& graph, const PlanOptions& options);

// Gives every slot that lives in the arena its offset; plan.steps carry the kernels in the order of program.items, and plan.segment_ends
// stand. Fills plan.arena_bytes, buffers, outputs_at and the steps' shared workspaces.
void place_in_arena(Program& program, Plan& plan, const Graph& graph);

}  // namespace tandem
