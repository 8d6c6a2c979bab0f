// Places buffers in one arena by lifetime: largest first, each at the lowest offset that is free while it lives.
#include <algorithm>

#include "runtime/plan/program.h"
#include "runtime/plan/reorder.h"

namespace tandem {
namespace {

constexpr std::size_t kAlignment = 64;
std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Interval {
  std::size_t bytes, first, last, offset = 0;
  std::int64_t slot = -1;  // -1: a step's shared workspace
};

struct Lifetime {
  std::size_t first = 0, last = 0;
  bool used = false;
};

bool in_arena(const Slot& s) { return s.place.kind == Place::Kind::kNone || s.place.kind == Place::Kind::kArena; }

std::vector<Lifetime> lifetimes(const Program& program) {
  std::vector<Lifetime> life(program.slots.size());
  for (std::size_t i = 0; i < program.items.size(); ++i) {
    for (const auto* ids : {&program.items[i].in, &program.items[i].out}) {
      for (const std::int32_t s : *ids) {
        if (s < 0) continue;
        Lifetime& l = life[program.root(s)];
        if (!l.used) l = {i, i, true};
        l.last = i;
      }
    }
  }
  return life;
}

// Kept outputs live to the end of the segment that makes them, or of the last one where they are read.
void keep_outputs(const Program& program, Plan& plan, std::vector<Lifetime>& life) {
  for (const std::int32_t slot : program.kept) {
    Lifetime& l = life[program.root(slot)];
    const auto end = std::upper_bound(plan.segment_ends.begin(), plan.segment_ends.end(), l.first);
    plan.outputs_at.push_back({0, static_cast<std::size_t>(end - plan.segment_ends.begin())});
    l.last = std::max(l.last, *end - 1);
  }
}

// Lets output 0 of a step take the memory of an operand that dies there.
void share_in_place(Program& program, const std::vector<Step>& steps, std::vector<Lifetime>& life) {
  for (std::size_t i = 0; i < program.items.size(); ++i) {
    const ProgramItem& item = program.items[i];
    if (steps[i].kernel.in_place == 0 || item.out.empty() || item.out[0] < 0) continue;
    const std::size_t out = program.root(item.out[0]);
    if (!in_arena(program.slots[out]) || life[out].first != i) continue;
    for (std::size_t k = 0; k < item.in.size() && k < 32; ++k) {
      if (!(steps[i].kernel.in_place >> k & 1) || item.in[k] < 0) continue;
      const std::size_t in = program.root(item.in[k]);
      const bool only_reader = std::count_if(item.in.begin(), item.in.end(), [&](std::int32_t s) { return s >= 0 && program.root(s) == in; }) == 1;
      if (in == out || !in_arena(program.slots[in]) || life[in].last != i || !only_reader) continue;
      if (!same_memory(program.slots[static_cast<std::size_t>(item.in[k])].desc, program.slots[static_cast<std::size_t>(item.out[0])].desc)) continue;
      if (program.slots[in].desc.bytes() < program.slots[out].desc.bytes()) continue;
      program.slots[out].alias = static_cast<std::int32_t>(in);
      life[in].last = life[out].last;
      break;
    }
  }
}

std::size_t place(std::vector<Interval>& intervals) {
  std::stable_sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.bytes > b.bytes; });
  std::size_t total = 0;
  std::vector<const Interval*> placed;  // by offset
  for (Interval& it : intervals) {
    std::size_t at = 0;
    for (const Interval* other : placed) {
      if (other->last < it.first || it.last < other->first) continue;
      if (at + it.bytes <= other->offset) break;
      at = std::max(at, other->offset + other->bytes);
    }
    it.offset = at;
    total = std::max(total, at + it.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), &it, [](const Interval* a, const Interval* b) { return a->offset < b->offset; }),
                  &it);
  }
  return total;
}

}  // namespace

void place_in_arena(Program& program, Plan& plan, const Graph& graph) {
  std::vector<Step>& steps = plan.steps;
  auto life = lifetimes(program);
  keep_outputs(program, plan, life);
  share_in_place(program, steps, life);
  std::vector<Interval> intervals;
  for (std::size_t s = 0; s < program.slots.size(); ++s) {
    if (program.slots[s].alias >= 0 || !life[s].used || !in_arena(program.slots[s])) continue;
    intervals.push_back({aligned(program.slots[s].desc.bytes()), life[s].first, life[s].last, 0, static_cast<std::int64_t>(s)});
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kernel.shared_bytes) intervals.push_back({aligned(steps[i].kernel.shared_bytes), i, i, 0, -1});
  }
  plan.arena_bytes = place(intervals) + kAlignment;  // vector loads may look past the last buffer
  for (const Interval& it : intervals) {
    if (it.slot < 0) {
      steps[it.first].shared_at = it.offset;
      continue;
    }
    Slot& slot = program.slots[static_cast<std::size_t>(it.slot)];
    slot.place = {Place::Kind::kArena, it.offset};
    plan.buffers.push_back({graph.value(slot.value).name, it.bytes, it.first, it.last});
  }
  for (std::size_t o = 0; o < program.kept.size(); ++o) plan.outputs_at[o].at = program.slots[program.root(program.kept[o])].place.at;
}

}  // namespace tandem
