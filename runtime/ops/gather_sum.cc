#include "runtime/ops/gather_sum.h"

#include <fmt/format.h>

#include "runtime/ops/movement.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

struct Maps {
  std::vector<AxisTaps> axes;
};

void check(const ResizeTaps& t, std::int64_t dim, std::size_t axis) {
  bool fits = !t.first.empty() && t.first.front() == 0 && t.first.back() == static_cast<std::int64_t>(t.index.size()) &&
              t.weight.size() == t.index.size() && std::is_sorted(t.first.begin(), t.first.end());
  for (const std::int64_t i : t.index) fits = fits && i >= 0 && i < dim;
  if (!fits) throw InvalidModel(fmt::format("the map of axis {} does not fit its {} elements", axis, dim));
}

void infer(InferContext& c) {
  c.expect_dtype(0, kFloatTypes);
  Shape y = c.shape(0);
  Maps maps;
  const auto axes = c.attributes().integers("axes");
  if (axes.empty() || c.inputs() != 1 + 3 * axes.size()) {
    throw InvalidModel(fmt::format("{} operands for {} axes; each takes three", c.inputs(), axes.size()));
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    AxisTaps a{static_cast<std::size_t>(normalise_axis(axes[i], c.rank(0), "axes")), {}};
    a.taps.first = c.host_ints(1 + 3 * i);
    a.taps.index = c.host_ints(2 + 3 * i);
    a.taps.weight = c.host(3 + 3 * i).to_doubles();
    check(a.taps, y[a.axis], a.axis);
    y[a.axis] = static_cast<std::int64_t>(a.taps.first.size()) - 1;
    maps.axes.push_back(std::move(a));
  }
  c.set_params(std::move(maps));
  c.set_output(0, c.dtype(0), y);
}

Kernel cpu(CpuContext& c) {
  Kernel kernel = move_kernel("plain:gather_sum", c.out, {});  // channel padding
  add_axis_passes(kernel, c.in[0], c.out[0], c.params<Maps>().axes);
  return kernel;
}

Rows rows(const RowContext& c) {
  for (const AxisTaps& a : c.params<Maps>().axes) {
    if (a.axis == 0) return Rows::mixed();
  }
  return rows_of_first(c);
}

}  // namespace

ValueId emit_gather_sum(GradientContext& c, ValueId v, const std::vector<AxisTaps>& maps) {
  if (maps.empty()) return v;
  std::vector<ValueId> operands{v};
  std::vector<std::int64_t> axes;
  for (const AxisTaps& a : maps) {
    axes.push_back(static_cast<std::int64_t>(a.axis));
    operands.push_back(c.ints(a.taps.first));
    operands.push_back(c.ints(a.taps.index));
    operands.push_back(c.constant(Tensor::of<double>({static_cast<std::int64_t>(a.taps.weight.size())}, std::span(a.taps.weight))));
  }
  Attributes attributes;
  attributes.set("axes", std::move(axes));
  return c.emit("GatherSum", std::move(operands), std::move(attributes));
}

ResizeTaps transposed(const ResizeTaps& t, std::int64_t in) {
  ResizeTaps out;
  out.first.assign(static_cast<std::size_t>(in) + 1, 0);
  for (const std::int64_t i : t.index) ++out.first[static_cast<std::size_t>(i) + 1];
  for (std::size_t i = 1; i < out.first.size(); ++i) out.first[i] += out.first[i - 1];
  out.index.resize(t.index.size());
  out.weight.resize(t.index.size());
  std::vector<std::int64_t> next(out.first);
  for (std::size_t o = 0; o + 1 < t.first.size(); ++o) {
    for (std::int64_t k = t.first[o]; k < t.first[o + 1]; ++k) {
      const auto tap = static_cast<std::size_t>(k), to = static_cast<std::size_t>(next[static_cast<std::size_t>(t.index[tap])]++);
      out.index[to] = static_cast<std::int64_t>(o);
      out.weight[to] = t.weight[tap];
    }
  }
  return out;
}

OpDef gather_sum_op() {
  return {.name = "GatherSum",
          .min_inputs = 4,
          .max_inputs = 31,
          .infer = infer,
          .cpu = cpu,
          .host_inputs = ~1u,
          .rows = rows,
          .layout = LayoutRule::kAny,
          .bf16 = Bf16Rule::kStore};
}

}  // namespace tandem
