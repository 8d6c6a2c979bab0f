// ScatterElements, ScatterND: a copy of the data, then the updates one after the other in the order of the indices, so that repeated
// indices have one result: the last one wins, or they are combined in order.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/cpu/strided.h"
#include "runtime/ops/families.h"
#include "runtime/ops/gradient_support.h"
#include "runtime/ops/indices.h"
#include "runtime/ops/movement.h"

namespace tandem {
namespace {

enum class Reduction { kNone, kAdd, kMul, kMax, kMin };

struct Scatter {
  Reduction reduction;
  std::size_t axis;  // ScatterElements
};

Reduction reduction_of(const InferContext& c) {
  const std::string text = c.attributes().text("reduction", "none");
  const std::pair<std::string_view, Reduction> names[] = {
      {"none", Reduction::kNone}, {"add", Reduction::kAdd}, {"mul", Reduction::kMul}, {"max", Reduction::kMax}, {"min", Reduction::kMin}};
  for (const auto& [name, value] : names) {
    if (text != name) continue;
    if (value != Reduction::kNone && c.dtype(0) == DType::kBool)
      throw Unsupported(fmt::format("reduction '{}' of bool values is not supported", text));
    return value;
  }
  throw InvalidModel(fmt::format("reduction must be none, add, mul, max or min, is '{}'", text));
}

template <class T>
T combined(Reduction reduction, T old, T update) {
  if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>) {
    return T(combined(reduction, static_cast<float>(old), static_cast<float>(update)));
  } else if constexpr (std::is_same_v<T, bool>) {
    return update;
  } else {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(old) && reduction != Reduction::kNone) return old;
    }
    const bool keep_old = reduction == Reduction::kMax ? old > update : old < update;
    if constexpr (std::is_integral_v<T>) {  // wraps around
      using U = std::make_unsigned_t<T>;
      const auto a = static_cast<std::uint64_t>(static_cast<U>(old)), b = static_cast<std::uint64_t>(static_cast<U>(update));
      if (reduction == Reduction::kAdd) return static_cast<T>(a + b);
      if (reduction == Reduction::kMul) return static_cast<T>(a * b);
    } else {
      if (reduction == Reduction::kAdd) return old + update;
      if (reduction == Reduction::kMul) return old * update;
    }
    return reduction != Reduction::kNone && keep_old ? old : update;
  }
}

// Copies the data (nothing to do in place), then runs `update` as one task.
Kernel scatter_kernel(std::string name, CpuContext& c, std::function<void(const KernelArgs&, int)> update) {
  Kernel k = move_kernel(std::move(name), c.out, {{0, 0, StridedCopy(c.out[0].shape, side_of(c.in[0]), side_of(c.out[0]))}});
  k.stages.push_back({1, std::move(update)});
  k.in_place = 1;
  return k;
}

// ---- ScatterElements

void infer_scatter_elements(InferContext& c) {
  c.expect_rank(0, 1, 16);
  expect_indices(c, 1);
  c.expect_same_dtype(0, 2);
  const Shape &x = c.shape(0), &indices = c.shape(1);
  const auto axis = static_cast<std::size_t>(normalise_axis(c.attributes().integer("axis", 0), c.rank(0)));
  bool fits = indices.size() == x.size() && indices == c.shape(2);
  for (std::size_t i = 0; fits && i < x.size(); ++i) fits = i == axis || indices[i] <= x[i];
  if (!fits) {
    throw InvalidModel(fmt::format("indices of shape {} and updates of shape {} do not fit data of shape {} beside axis {}", to_string(indices),
                                   to_string(c.shape(2)), to_string(x), axis));
  }
  check_known_indices(c, 1, x[axis]);
  c.set_params(Scatter{reduction_of(c), axis});
  c.set_output(0, c.dtype(0), x);
}

Kernel cpu_scatter_elements(CpuContext& c) {
  const auto p = c.params<Scatter>();
  auto to = c.out[0].strides();
  const std::int64_t dim = c.out[0].shape[p.axis], step = std::exchange(to[p.axis], 0);
  const StridedLoop loop(c.in[1].shape, {c.in[1].strides(), c.in[2].strides(), to});
  const DType index_type = c.in[1].dtype;
  return dispatch(c.out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    return scatter_kernel("plain:scatter_elements", c, [=](const KernelArgs& k, int) {
      const Indices indices(index_type, k.in[1]);
      for (int task = 0; task < loop.tasks(); ++task) {
        loop.for_each_run(task, [&](const std::int64_t* at, std::int64_t n) {
          for (std::int64_t i = 0; i < n; ++i) {
            T& target = k.output<T>(0)[at[2] + i * loop.step(2) + indices.at(at[0] + i * loop.step(0), dim) * step];
            target = combined(p.reduction, target, k.input<T>(2)[at[1] + i * loop.step(1)]);
          }
        });
      }
    });
  });
}

Rows rows_scatter_elements(const RowContext& c) {
  const bool same =
      std::all_of(c.inputs.begin(), c.inputs.end(), [&](const Rows& r) { return r.is_batched() && r.per_sample == c.inputs[0].per_sample; });
  return same && c.params<Scatter>().axis != 0 ? c.inputs[0] : Rows::mixed();
}

// ---- ScatterND

void infer_scatter_nd(InferContext& c) {
  c.expect_rank(0, 1, 64);
  c.expect_rank(1, 1, 64);
  expect_indices(c, 1);
  c.expect_same_dtype(0, 2);
  const Shape &x = c.shape(0), &indices = c.shape(1);
  if (indices.back() > c.rank(0)) throw InvalidModel(fmt::format("index tuples of {} values for data of shape {}", indices.back(), to_string(x)));
  Shape updates(indices.begin(), indices.end() - 1);
  updates.insert(updates.end(), x.begin() + indices.back(), x.end());
  if (c.shape(2) != updates) throw InvalidModel(fmt::format("updates must have shape {}, have {}", to_string(updates), to_string(c.shape(2))));
  c.set_params(Scatter{reduction_of(c), 0});
  c.set_output(0, c.dtype(0), x);
}

Kernel cpu_scatter_nd(CpuContext& c) {
  const auto reduction = c.params<Scatter>().reduction;
  const Shape &x = c.in[0].shape, &indices = c.in[1].shape;
  const std::int64_t depth = indices.back(), rows = elements(std::span(indices).first(indices.size() - 1));
  const std::int64_t inner = elements(std::span(x).subspan(static_cast<std::size_t>(depth)));
  const auto strides = row_major_strides(x);
  const DType index_type = c.in[1].dtype;
  return dispatch(c.out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    return scatter_kernel("plain:scatter_nd", c, [=](const KernelArgs& k, int) {
      const Indices index(index_type, k.in[1]);
      for (std::int64_t r = 0; r < rows; ++r) {
        T* target = k.output<T>(0);
        for (std::int64_t d = 0; d < depth; ++d)
          target += index.at(r * depth + d, x[static_cast<std::size_t>(d)]) * strides[static_cast<std::size_t>(d)];
        const T* update = k.input<T>(2) + r * inner;
        for (std::int64_t i = 0; i < inner; ++i) target[i] = combined(reduction, target[i], update[i]);
      }
    });
  });
}

// ---- backward

void expect_differentiable(Reduction r) {
  if (r != Reduction::kNone && r != Reduction::kAdd) throw Unsupported("only the reductions none and add have gradients");
}

// The numbers 0, 1, ... of that shape: which update came last where is found by scattering them.
Tensor numbering(const Shape& shape) {
  Tensor t(DType::kI64, shape);
  auto values = t.as_mutable<std::int64_t>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i);
  return t;
}

void scatter_elements_gradient(GradientContext& c) {
  const auto p = c.params<Scatter>();
  expect_differentiable(p.reduction);
  const Attributes axis = attribute("axis", static_cast<std::int64_t>(p.axis));
  const ValueId indices = c.input(1);
  const Shape shape = c.shape(indices);
  const bool replaces = p.reduction == Reduction::kNone;
  if (c.wants(0)) c.set(0, replaces ? c.emit("ScatterElements", {c.dy(), indices, zeros(c, c.dy(), shape)}, axis) : c.dy());
  if (!c.wants(2)) return;
  ValueId of_updates = c.emit("GatherElements", {c.dy(), indices}, axis);
  if (replaces) {
    const ValueId numbers = c.constant(numbering(shape));
    const ValueId last = c.emit("ScatterElements", {c.constant(Tensor(DType::kI64, c.shape(c.dy()))), indices, numbers}, axis);
    of_updates = only_where(c, c.emit("Equal", {c.emit("GatherElements", {last, indices}, axis), numbers}), of_updates);
  }
  c.set(2, of_updates);
}

void scatter_nd_gradient(GradientContext& c) {
  const Reduction reduction = c.params<Scatter>().reduction;
  expect_differentiable(reduction);
  const ValueId indices = c.input(1);
  const bool replaces = reduction == Reduction::kNone;
  const Shape tuples = c.shape(indices), updates = c.shape(c.input(2)), x = c.shape(c.input(0));
  if (c.wants(0)) c.set(0, replaces ? c.emit("ScatterND", {c.dy(), indices, zeros(c, c.dy(), updates)}) : c.dy());
  if (!c.wants(2)) return;
  ValueId of_updates = c.emit("GatherND", {c.dy(), indices});
  if (replaces) {
    const ValueId numbers = c.constant(numbering(Shape(tuples.begin(), tuples.end() - 1)));
    const ValueId last = c.emit("ScatterND", {c.constant(Tensor(DType::kI64, Shape(x.begin(), x.begin() + tuples.back()))), indices, numbers});
    Shape rows(updates.size(), 1);
    std::copy(tuples.begin(), tuples.end() - 1, rows.begin());
    of_updates = only_where(c, c.reshape(c.emit("Equal", {c.emit("GatherND", {last, indices}), numbers}), rows), of_updates);
  }
  c.set(2, of_updates);
}

}  // namespace

std::span<const OpDef> scatter_ops() {
  static const OpDef ops[] = {
      {.name = "ScatterElements",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_scatter_elements,
       .cpu = cpu_scatter_elements,
       .data_inputs = 0b101,
       .rows = rows_scatter_elements,
       .gradient = scatter_elements_gradient},
      {.name = "ScatterND",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_scatter_nd,
       .cpu = cpu_scatter_nd,
       .data_inputs = 0b101,
       .gradient = scatter_nd_gradient},
  };
  return ops;
}

}  // namespace tandem
