#include "runtime/plan/rows.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/ops/op_table.h"

namespace tandem {
namespace {

// The batches that are tried: small ones (with 1 a dimension may stand for anything) and the one asked for, where a limit may bite that
// small ones do not reach (the first three rows of a Slice).
std::vector<std::int64_t> probe_batches(std::int64_t batch) {
  std::vector<std::int64_t> batches = {2, 3, 1};
  if (batch > 3) batches.push_back(batch);
  return batches;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && (a.bytes() == 0 || a.shares(b) || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

// A constant that grows with the batch is batched when all its rows are equal (a broadcast zero state, say).
Rows rows_of_constant(const Tensor& t, std::int64_t batch) {
  if (t.rank() == 0 || t.shape()[0] == 0 || t.shape()[0] % batch != 0) return Rows::mixed();
  const auto* bytes = static_cast<const char*>(t.data());
  const std::size_t row = t.bytes() / static_cast<std::size_t>(batch);
  for (std::int64_t i = 1; i < batch; ++i) {
    if (std::memcmp(bytes, bytes + static_cast<std::size_t>(i) * row, row) != 0) return Rows::mixed();
  }
  return Rows::batched(t.shape()[0] / batch);
}

std::vector<bool> find_batched_inputs(const Graph& graph, const InputBinding& binding, std::int64_t& batch) {
  std::vector<bool> batched(graph.inputs.size(), false);
  std::int64_t fixed = -2;  // the file's own fixed batch; -1: dynamic; -2: not seen
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    if (binding.values.count(i) || binding.shapes[i].empty()) continue;
    const Declared* declared = i < graph.declared_inputs.size() && graph.declared_inputs[i].shape_known ? &graph.declared_inputs[i] : nullptr;
    const std::int64_t dim = declared && !declared->shape.empty() ? declared->shape[0] : -1;
    if (fixed == -2) {
      fixed = dim;
      batch = binding.shapes[i][0];
    }
    batched[i] = dim == fixed && binding.shapes[i][0] == batch;
  }
  return batched;
}

struct Probe {
  Graph graph;
  std::vector<Rows> rows;
};

class Prover {
 public:
  Prover(const Graph& graph, const InputBinding& binding, CutProof& proof) : proof_(proof), batches_(probe_batches(proof.batch)) {
    for (const std::int64_t n : batches_) {
      Probe p;
      p.graph = graph;
      infer(p.graph, with_batch(binding, proof, n));
      remove_dead_nodes(p.graph);
      p.rows.resize(p.graph.values.size());
      probes_.push_back(std::move(p));
    }
  }

  // Empty when the proof stands.
  std::string run() {
    for (Probe& p : probes_) {
      if (p.graph.nodes.size() != probes_[0].graph.nodes.size() || p.graph.values.size() != probes_[0].graph.values.size())
        return "the graph's structure depends on the batch";
      for (std::size_t i = 0; i < p.graph.inputs.size(); ++i) {
        if (proof_.input_batched[i]) p.rows[static_cast<std::size_t>(p.graph.inputs[i])] = Rows::batched(1);
      }
    }
    compare_constants();
    for (std::size_t n = 0; n < probes_[0].graph.nodes.size(); ++n) {
      const std::string reason = node(n);
      if (!reason.empty()) return reason;
    }
    for (const ValueId out : probes_[0].graph.outputs) {
      const Rows r = probes_[0].rows[static_cast<std::size_t>(out)];
      if (!r.is_batched()) return fmt::format("output \"{}\" does not carry the batch on axis 0", probes_[0].graph.value(out).name);
      proof_.rows_per_sample.push_back(r.per_sample);
    }
    return {};
  }

 private:
  void compare_constants() {
    const Graph& first = probes_[0].graph;
    for (std::size_t v = 0; v < first.values.size(); ++v) {
      bool same = true;
      for (const Probe& p : probes_)
        same &= !first.values[v].known() || (p.graph.values[v].known() && same_bytes(first.values[v].constant, p.graph.values[v].constant));
      if (same) continue;
      for (std::size_t p = 0; p < probes_.size(); ++p) {
        const Value& value = probes_[p].graph.values[v];
        probes_[p].rows[v] = value.known() ? rows_of_constant(value.constant, batches_[p]) : Rows::mixed();
      }
    }
  }

  std::string node(std::size_t n) {
    std::optional<Rows> agreed;
    const Node& first = probes_[0].graph.nodes[n];
    const OpDef& op = need_op(first.op);
    for (std::size_t p = 0; p < probes_.size(); ++p) {
      const Rows r = rule(probes_[p], op, n, batches_[p]);
      if (r.kind == Rows::Kind::kMixed || (agreed && (agreed->kind != r.kind || agreed->per_sample != r.per_sample))) {
        return fmt::format("{} mixes samples, or is not known to keep them apart", describe(probes_[0].graph, first));
      }
      agreed = r;
    }
    for (const ValueId out : first.outputs) {
      if (out == kNoValue) continue;
      if (!shapes_agree(out, *agreed))
        return fmt::format("the shape of \"{}\" does not grow with the batch as its rows do", probes_[0].graph.value(out).name);
      for (Probe& p : probes_) p.rows[static_cast<std::size_t>(out)] = *agreed;
    }
    return {};
  }

  static Rows rule(const Probe& p, const OpDef& op, std::size_t n, std::int64_t batch) {
    const Node& node = p.graph.nodes[n];
    std::vector<Rows> in(node.inputs.size());
    bool any = false;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const bool steers = i < 32 && (op.host_inputs >> i & 1);
      if (node.inputs[i] == kNoValue || steers) continue;
      in[i] = p.rows[static_cast<std::size_t>(node.inputs[i])];
      if (in[i].kind == Rows::Kind::kMixed) return Rows::mixed();
      any |= in[i].is_batched();
    }
    if (!op.foldable) return Rows::mixed();
    if (!any) return Rows::invariant();
    return op.rows ? op.rows({p.graph, node, batch, in}) : Rows::mixed();
  }

  bool shapes_agree(ValueId out, const Rows& rows) const {
    const Shape& a = probes_[0].graph.value(out).shape;
    for (std::size_t p = 0; p < probes_.size(); ++p) {
      Shape want = a;
      if (rows.is_batched()) {
        if (want.empty()) return false;
        want[0] = rows.per_sample * batches_[p];
      }
      if (probes_[p].graph.value(out).shape != want) return false;
    }
    return true;
  }

  CutProof& proof_;
  const std::vector<std::int64_t> batches_;
  std::vector<Probe> probes_;
};

}  // namespace

InputBinding with_batch(const InputBinding& binding, const CutProof& proof, std::int64_t batch) {
  InputBinding out = binding;
  for (std::size_t i = 0; i < out.shapes.size(); ++i) {
    if (proof.input_batched[i]) out.shapes[i][0] = batch;
  }
  return out;
}

CutProof prove_cut(const Graph& graph, const InputBinding& binding) {
  CutProof proof;
  proof.input_batched = find_batched_inputs(graph, binding, proof.batch);
  if (proof.batch < 1) {
    proof.reason = "no input carries a batch";
    return proof;
  }
  try {
    Prover prover(graph, binding, proof);
    proof.reason = prover.run();
    proof.possible = proof.reason.empty();
  } catch (const Error& e) {
    proof.reason = fmt::format("the graph does not accept another batch: {}", e.message());
  }
  return proof;
}

}  // namespace tandem
