#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/graph/passes.h"
#include "runtime/ops/op_table.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/program.h"
#include "runtime/plan/reorder.h"

namespace tandem {
namespace {

// A step with nothing to write is not run.
bool writes_nothing(const Program& program, const ProgramItem& item) {
  return std::all_of(item.out.begin(), item.out.end(),
                     [&](std::int32_t s) { return s < 0 || program.slots[static_cast<std::size_t>(s)].desc.size() == 0; });
}

// What making and packing an operand takes for the moment, beyond the packed bytes (which are not there yet while it is made).
std::size_t beside_packed(const Tensor& operand, std::size_t packed) {
  const std::size_t making = operand.making_bytes();
  return making == 0 ? 0 : std::max(making, operand.bytes() + packed) - packed;
}

class Planner {
 public:
  Planner(const Graph& graph, const InputBinding& binding, const PlanOptions& options, const CpuInfo& cpu) : graph_(graph), cpu_(cpu) {
    plan_.options = options;
    infer(graph_, binding);
    remove_dead_nodes(graph_);
    if (options.passes) plan_.fused = run_passes(graph_);
    shared_keys_ = binding.values.empty();
  }

  Plan run() {
    for (const ValueId in : graph_.inputs) plan_.inputs.push_back(plain(in));
    for (const ValueId out : graph_.outputs) plan_.outputs.push_back(plain(out));
    program_ = lay_out(graph_, plan_.options);
    std::erase_if(program_.items, [&](const ProgramItem& item) { return writes_nothing(program_, item); });
    for (const ProgramItem& item : program_.items) prepare(item);
    find_segments();
    place_in_arena(program_, plan_, graph_);
    for (std::size_t i = 0; i < program_.items.size(); ++i) finish(program_.items[i], plan_.steps[i]);
    for (SyncPoint& s : plan_.syncs) {
      s.part = plan_.steps[s.step].in[0].at;
      s.merged = plan_.steps[s.step].out[0].at;
    }
    std::stable_sort(plan_.buffers.begin(), plan_.buffers.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    return std::move(plan_);
  }

 private:
  TensorDesc plain(ValueId id) const { return TensorDesc::plain(graph_.value(id).dtype, graph_.value(id).shape); }

  std::vector<TensorDesc> descs(const std::vector<std::int32_t>& slots) const {
    std::vector<TensorDesc> out;
    for (const std::int32_t s : slots) out.push_back(s < 0 ? TensorDesc{} : program_.slots[static_cast<std::size_t>(s)].desc);
    return out;
  }

  void prepare(const ProgramItem& item) {
    Step step;
    step.in_descs = descs(item.in);
    step.out_descs = descs(item.out);
    step.first_pack = plan_.packs.size();
    if (!item.node) {
      step.op = "Reorder";
      step.node = fmt::format("reorder of \"{}\"", graph_.value(program_.slots[static_cast<std::size_t>(item.in[0])].value).name);
      step.kernel = reorder_kernel(step.in_descs[0], step.out_descs[0]);
      dropped_.push_back(0);
    } else {
      step.op = item.node->op;
      step.node = describe(graph_, *item.node);
      with_context([&] { return step.node; }, [&] { prepare_node(*item.node, step); });
    }
    plan_.scratch_bytes = std::max(plan_.scratch_bytes, step.kernel.scratch_bytes);
    plan_.max_operands = std::max({plan_.max_operands, item.in.size(), item.out.size()});
    plan_.steps.push_back(std::move(step));
  }

  void prepare_node(const Node& node, Step& step) {
    const OpDef& op = need_op(node.op);
    if (op.sync != Sync::kNone) plan_.syncs.push_back({.step = plan_.steps.size(), .kind = op.sync, .desc = step.in_descs[0]});
    if (!op.cpu) throw Unsupported(fmt::format("{} has no CPU kernel", node.op));
    CpuContext context(graph_, node, step.in_descs, step.out_descs, plan_.options.precision, cpu_);
    step.kernel = op.cpu(context);
    for (const Pack& p : context.packs()) {
      const Value& operand = graph_.value(p.operand);
      const auto input = std::find(graph_.inputs.begin(), graph_.inputs.end(), p.operand) - graph_.inputs.begin();
      plan_.packs.push_back({shared_keys_ ? operand.name + '|' + p.key : std::string(), p.bytes,
                             operand.parameter ? static_cast<std::int32_t>(input) : -1, p.fill, operand.constant,
                             beside_packed(operand.constant, p.bytes)});
    }
    step.pack_count = context.packs().size();
    dropped_.push_back(context.dropped());
  }

  void finish(const ProgramItem& item, Step& step) {
    const std::uint32_t dropped = dropped_[static_cast<std::size_t>(&step - plan_.steps.data())];
    for (std::size_t i = 0; i < item.in.size(); ++i) step.in.push_back(i < 32 && (dropped >> i & 1) ? Place{} : place(item.in[i]));
    for (const std::int32_t s : item.out) step.out.push_back(place(s));
  }

  // Syncs that follow each other directly end one segment.
  void find_segments() {
    for (std::size_t i = 0; i < plan_.syncs.size(); ++i) {
      if (i + 1 == plan_.syncs.size() || plan_.syncs[i + 1].step != plan_.syncs[i].step + 1) plan_.segment_ends.push_back(plan_.syncs[i].step + 1);
    }
    plan_.segment_ends.push_back(plan_.steps.size());
  }

  Place place(std::int32_t slot) {
    if (slot < 0) return {};
    const Place at = program_.slots[program_.root(slot)].place;
    if (at.kind != Place::Kind::kConstant) return at;
    const auto [it, added] = constants_.emplace(at.at, plan_.constants.size());
    if (added) plan_.constants.push_back(graph_.values[at.at].constant);
    return {Place::Kind::kConstant, it->second};
  }

  Graph graph_;
  const CpuInfo& cpu_;
  Plan plan_;
  Program program_;
  std::vector<std::uint32_t> dropped_;
  std::map<std::size_t, std::size_t> constants_;
  bool shared_keys_ = true;
};

}  // namespace

std::size_t Plan::constant_bytes() const {
  std::size_t sum = 0;
  for (const Tensor& t : constants) sum += t.bytes();
  return sum;
}

void check_precision(Precision precision, const CpuInfo& cpu) {
  if (precision == Precision::kBF16x3 && !cpu.amx_bf16 && !cpu.emulate_amx)
    throw Unsupported(fmt::format("--precision bf16x3 needs a CPU with AMX (amx_bf16); this one ({}) has none: use f32", cpu.model_name));
}

Plan make_plan(const Graph& graph, const InputBinding& binding, const PlanOptions& options, const CpuInfo& cpu) {
  return Planner(graph, binding, options, cpu).run();
}

}  // namespace tandem
