// TopK. Equal values in the order of their indices; NaN counts as larger than every number.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/ops/families.h"
#include "runtime/ops/gradient_support.h"

namespace tandem {
namespace {

struct Selection {
  std::size_t axis;
  bool largest;
};

// A value as an unsigned integer of the same order.
template <class T>
std::uint64_t order_of(T v) {
  constexpr std::uint64_t kTop = std::uint64_t{1} << 63;
  if constexpr (std::is_same_v<T, bool> || std::is_unsigned_v<T>) {
    return static_cast<std::uint64_t>(v);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(v)) ^ kTop;
  } else {
    double d;
    if constexpr (std::is_floating_point_v<T>)
      d = v;
    else
      d = static_cast<float>(v);
    if (std::isnan(d)) return ~std::uint64_t{0};
    const auto bits = std::bit_cast<std::uint64_t>(d == 0 ? 0.0 : d);
    return bits & kTop ? ~bits : bits | kTop;
  }
}

void infer(InferContext& c) {
  c.expect_rank(0, 1, 64);
  const auto k = c.host_ints(1);
  if (k.size() != 1) throw InvalidModel(fmt::format("K must be one value, has {}", k.size()));
  Shape y = c.shape(0);
  const Selection p{static_cast<std::size_t>(normalise_axis(c.attributes().integer("axis", -1), c.rank(0))),
                    c.attributes().integer("largest", 1) != 0};
  if (k[0] < 0 || k[0] > y[p.axis]) throw InvalidModel(fmt::format("K is {}, the axis has {} elements", k[0], y[p.axis]));
  y[p.axis] = k[0];
  c.set_params(p);
  c.set_output(0, c.dtype(0), y);
  c.set_output(1, DType::kI64, y);
}

struct Candidate {
  std::uint64_t order;  // the larger the better
  std::int64_t index;
};

struct Problem {
  std::int64_t dim, k, inner, rows;
  bool largest;
};

template <class T>
void select_row(const Problem& p, const KernelArgs& args, std::int64_t row) {
  auto* candidates = reinterpret_cast<Candidate*>(args.scratch);
  const std::int64_t outer = row / p.inner, column = row % p.inner;
  const T* x = args.input<T>(0) + outer * p.dim * p.inner + column;
  for (std::int64_t i = 0; i < p.dim; ++i) {
    const std::uint64_t order = order_of(x[i * p.inner]);
    candidates[i] = {p.largest ? order : ~order, i};
  }
  std::partial_sort(candidates, candidates + p.k, candidates + p.dim,
                    [](const Candidate& a, const Candidate& b) { return a.order != b.order ? a.order > b.order : a.index < b.index; });
  for (std::int64_t i = 0; i < p.k; ++i) {
    const std::int64_t to = (outer * p.k + i) * p.inner + column;
    if (args.out[0]) args.output<T>(0)[to] = x[candidates[i].index * p.inner];
    if (args.out[1]) args.output<std::int64_t>(1)[to] = candidates[i].index;
  }
}

Kernel cpu(CpuContext& c) {
  const auto s = c.params<Selection>();
  const Shape& x = c.in[0].shape;
  const auto& y = c.has_output(0) ? c.out[0].shape : c.out[1].shape;
  const std::int64_t inner = elements(std::span(x).subspan(s.axis + 1)), outer = elements(std::span(x).first(s.axis));
  const Problem p{x[s.axis], y[s.axis], inner, y[s.axis] == 0 ? 0 : outer * inner, s.largest};
  const std::int64_t per_task = std::max<std::int64_t>(1, (1 << 14) / std::max<std::int64_t>(1, p.dim));
  const bool two = c.out.size() > 1;
  Kernel kernel = dispatch(c.in[0].dtype, [&](auto tag) {
    return Kernel::single("plain:top_k", static_cast<int>((p.rows + per_task - 1) / per_task), [=](const KernelArgs& k, int task) {
      void* outputs[] = {k.out[0], two ? k.out[1] : nullptr};
      KernelArgs args = k;
      args.out = outputs;
      const std::int64_t first = task * per_task, last = std::min(p.rows, first + per_task);
      for (std::int64_t row = first; row < last; ++row) select_row<decltype(tag)>(p, args, row);
    });
  });
  kernel.scratch_bytes = static_cast<std::size_t>(p.dim) * sizeof(Candidate);
  return kernel;
}

Rows rows(const RowContext& c) { return c.params<Selection>().axis != 0 ? rows_of_first(c) : Rows::mixed(); }

void gradient(GradientContext& c) {
  if (c.dy(0) == kNoValue) return;
  const bool indexed = c.node().outputs.size() > 1 && c.output(1) != kNoValue;
  const ValueId indices = indexed ? c.output(1) : c.emit("TopK", {c.input(0), c.input(1)}, c.attributes(), 2)[1];
  Attributes a = attribute("axis", static_cast<std::int64_t>(c.params<Selection>().axis));
  a.set("reduction", std::string("add"));
  c.set(0, c.emit("ScatterElements", {zeros(c, c.dy(), c.shape(c.input(0))), indices, c.dy()}, std::move(a)));
}

}  // namespace

std::span<const OpDef> top_k_ops() {
  static const OpDef ops[] = {
      {.name = "TopK",
       .min_inputs = 2,
       .max_inputs = 2,
       .max_outputs = 2,
       .infer = infer,
       .cpu = cpu,
       .host_inputs = 2,
       .rows = rows,
       .gradient = gradient},
  };
  return ops;
}

}  // namespace tandem
