// Layout and type of every tensor: image tensors go channels-last where an operator asks for it and stay so through operators that do not
// care; a copy is made only where neighbours disagree.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/ops/op_table.h"
#include "runtime/plan/program.h"
#include "runtime/plan/reorder.h"

namespace tandem {
namespace {

TensorDesc describe_tensor(DType dtype, const Shape& shape, Layout layout) {
  const bool last = layout == Layout::kChannelsLast && shape.size() >= 3;
  return {.dtype = dtype, .shape = shape, .layout = last ? Layout::kChannelsLast : Layout::kPlain, .channel_pitch = last ? shape[1] : 0};
}

class LayOut {
 public:
  LayOut(const Graph& graph, const PlanOptions& options)
      : graph_(graph),
        bf16_(options.precision == Precision::kBF16),
        in_arena_(options.outputs_in_arena),
        slots_of_(graph.values.size()),
        uses_(use_counts(graph)),
        wants_last_(graph.values.size()) {
    for (const Node& node : graph.nodes) {
      const OpDef& op = need_op(node.op);
      for (const ValueId in : node.inputs) {
        if (in != kNoValue && op.layout == LayoutRule::kChannelsLast) wants_last_[static_cast<std::size_t>(in)] = true;
      }
    }
    find_readers();
  }

  Program run() {
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const Value& v = graph_.value(graph_.inputs[i]);
      if (!v.known()) new_slot(graph_.inputs[i], describe_tensor(v.dtype, v.shape, Layout::kPlain), {Place::Kind::kInput, i});
    }
    for (const Node& node : graph_.nodes) add(node);
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) add_output(i);
    return std::move(program_);
  }

 private:
  std::int32_t new_slot(ValueId value, TensorDesc desc, Place place = {}, std::int32_t alias = -1) {
    program_.slots.push_back({std::move(desc), value, place, alias});
    const auto id = static_cast<std::int32_t>(program_.slots.size() - 1);
    slots_of_[static_cast<std::size_t>(value)].push_back(id);
    return id;
  }
  Slot& slot(std::int32_t id) { return program_.slots[static_cast<std::size_t>(id)]; }

  // The first form in which the value exists.
  std::int32_t main_slot(ValueId id) {
    auto& have = slots_of_[static_cast<std::size_t>(id)];
    if (have.empty()) {
      const Value& v = graph_.value(id);
      new_slot(id, describe_tensor(v.dtype, v.shape, Layout::kPlain), {Place::Kind::kConstant, static_cast<std::size_t>(id)});
    }
    return have.front();
  }

  // A slot of the value in the wanted form; appends a copy when there is none.
  std::int32_t fetch(ValueId id, DType dtype, Layout layout) {
    const std::int32_t first = main_slot(id);
    const TensorDesc want = describe_tensor(dtype, graph_.value(id).shape, layout);
    for (const std::int32_t s : slots_of_[static_cast<std::size_t>(id)]) {
      if (slot(s).desc.layout == want.layout && slot(s).desc.dtype == want.dtype) return s;
    }
    for (const std::int32_t s : slots_of_[static_cast<std::size_t>(id)]) {
      if (same_memory(slot(s).desc, want)) return new_slot(id, want, {}, s);
    }
    const std::int32_t made = new_slot(id, want);
    program_.items.push_back({nullptr, {first}, {made}});
    return made;
  }

  // Parameters are read as they are, like constants.
  bool computed(ValueId id) const { return !graph_.value(id).known() && !graph_.value(id).parameter; }

  static bool is_data(const OpDef& op, std::size_t i) { return i < 32 ? (op.data_inputs >> i & 1) : op.data_inputs == ~0u; }

  DType stored_type(const OpDef& op, DType logical) const {
    return bf16_ && op.bf16 != Bf16Rule::kWiden && logical == DType::kF32 ? DType::kBF16 : logical;
  }
  DType output_type(const OpDef& op, ValueId id) const {
    const DType logical = graph_.value(id).dtype;
    return op.bf16 == Bf16Rule::kProduct && !read_as_stored_[static_cast<std::size_t>(id)] ? logical : stored_type(op, logical);
  }
  // Marks the values whose readers, behind views, all take stored bf16.
  void find_readers() {
    read_as_stored_.assign(graph_.values.size(), true);
    for (const ValueId id : graph_.outputs) read_as_stored_[static_cast<std::size_t>(id)] = false;
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      const OpDef& op = need_op(node->op);
      const bool stored = op.view ? read_as_stored_[static_cast<std::size_t>(node->outputs[0])] : op.bf16 != Bf16Rule::kWiden;
      for (std::size_t i = 0; i < node->inputs.size(); ++i) {
        const ValueId in = node->inputs[i];
        if (in != kNoValue && !(stored && (op.view || is_data(op, i)))) read_as_stored_[static_cast<std::size_t>(in)] = false;
      }
    }
  }

  void add(const Node& node) {
    const OpDef& op = need_op(node.op);
    if (op.view) return add_view(node);
    if (node.op == "Transpose" && add_transpose_view(node)) return;
    const Layout layout = layout_of(node, op);
    ProgramItem item{&node, {}, {}};
    for (std::size_t i = 0; i < node.inputs.size(); ++i) item.in.push_back(operand(node, op, i, layout));
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      if (id == kNoValue || (uses_[static_cast<std::size_t>(id)] == 0 && node.outputs.size() > 1)) {
        item.out.push_back(-1);
        continue;
      }
      const Value& v = graph_.value(id);
      item.out.push_back(new_slot(id, describe_tensor(output_type(op, id), v.shape, layout)));
    }
    program_.items.push_back(std::move(item));
  }

  Layout layout_of(const Node& node, const OpDef& op) {
    if (op.layout == LayoutRule::kPlain) return Layout::kPlain;
    if (op.layout == LayoutRule::kChannelsLast) return Layout::kChannelsLast;
    const ValueId out = node.outputs[0];
    if (node.op == "Transpose") return out != kNoValue && wants_last_[static_cast<std::size_t>(out)] ? Layout::kChannelsLast : Layout::kPlain;
    for (const ValueId in : node.inputs) {
      if (in != kNoValue && computed(in) && slot(main_slot(in)).desc.layout == Layout::kChannelsLast) return Layout::kChannelsLast;
    }
    return Layout::kPlain;
  }

  std::int32_t operand(const Node& node, const OpDef& op, std::size_t i, Layout layout) {
    const ValueId id = node.inputs[i];
    if (id == kNoValue) return -1;
    const Value& v = graph_.value(id);
    if (!is_data(op, i) || (!computed(id) && op.layout != LayoutRule::kChannelsLast)) return fetch(id, v.dtype, Layout::kPlain);
    const DType dtype = computed(id) ? stored_type(op, v.dtype) : v.dtype;
    if (op.layout != LayoutRule::kAny) return fetch(id, dtype, layout);
    const bool whole = node.outputs[0] != kNoValue && v.shape == graph_.value(node.outputs[0]).shape;
    return fetch(id, dtype, whole && node.op != "Transpose" ? layout : slot(main_slot(id)).desc.layout);
  }

  // The output is the operand's bytes; where the shape does not change the layout is kept as well.
  void add_view(const Node& node) {
    const ValueId in = node.inputs[0], out = node.outputs[0];
    const std::int32_t first = main_slot(in);
    const bool same_shape = graph_.value(in).shape == graph_.value(out).shape;
    const std::int32_t from = same_shape ? first : fetch(in, slot(first).desc.dtype, Layout::kPlain);
    TensorDesc desc = slot(from).desc;
    desc.shape = graph_.value(out).shape;
    new_slot(out, std::move(desc), {}, from);
  }

  // A Transpose whose result is the operand's memory read in another order, as NHWC -> NCHW where NCHW is kept channels-last.
  bool add_transpose_view(const Node& node) {
    const ValueId in = node.inputs[0], out = node.outputs[0];
    const Shape& shape = graph_.value(out).shape;
    std::vector<std::int64_t> perm(shape.size());
    for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<std::int64_t>(perm.size() - 1 - i);
    perm = node.attributes.integers("perm", perm);
    for (const std::int32_t from : std::vector<std::int32_t>(slots_of_[static_cast<std::size_t>(in)])) {
      const auto strides = slot(from).desc.strides();
      for (const Layout layout : {Layout::kChannelsLast, Layout::kPlain}) {
        const TensorDesc desc = describe_tensor(slot(from).desc.dtype, shape, layout);
        const auto want = desc.strides();
        bool same = true;
        for (std::size_t i = 0; i < shape.size(); ++i) same &= shape[i] == 1 || strides[static_cast<std::size_t>(perm[i])] == want[i];
        if (same && desc.bytes() == slot(from).desc.bytes()) {
          new_slot(out, desc, {}, from);
          return true;
        }
      }
    }
    return false;
  }

  void add_output(std::size_t i) {
    const ValueId id = graph_.outputs[i];
    const Value& v = graph_.value(id);
    const std::int32_t have = fetch(id, v.dtype, Layout::kPlain);
    Slot& root = program_.slots[program_.root(have)];
    if (in_arena_) {
      const bool computed_here = root.place.kind == Place::Kind::kNone;
      const std::int32_t kept = computed_here ? have : new_slot(id, slot(have).desc);
      if (!computed_here) program_.items.push_back({nullptr, {have}, {kept}});
      program_.kept.push_back(kept);
      return;
    }
    if (root.place.kind == Place::Kind::kNone && root.desc.bytes() == slot(have).desc.bytes()) {
      root.place = {Place::Kind::kOutput, i};
      return;
    }
    const std::int32_t copy = new_slot(id, slot(have).desc, {Place::Kind::kOutput, i});
    program_.items.push_back({nullptr, {have}, {copy}});
  }

  const Graph& graph_;
  const bool bf16_, in_arena_;
  std::vector<bool> read_as_stored_;
  std::vector<std::vector<std::int32_t>> slots_of_;
  const std::vector<std::int32_t> uses_;
  std::vector<bool> wants_last_;  // values that an operator takes channels-last
  Program program_;
};

}  // namespace

Program lay_out(const Graph& graph, const PlanOptions& options) { return LayOut(graph, options).run(); }

}  // namespace tandem
