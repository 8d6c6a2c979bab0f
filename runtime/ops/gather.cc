// Gather, GatherElements, GatherND.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/dtype_onnx.h"
#include "runtime/cpu/strided.h"
#include "runtime/ops/families.h"
#include "runtime/ops/gather_sum.h"
#include "runtime/ops/gradient_support.h"
#include "runtime/ops/indices.h"
#include "runtime/ops/movement.h"

namespace tandem {
namespace {

std::int64_t product(const Shape& s, std::size_t first, std::size_t last) { return elements(std::span(s).subspan(first, last - first)); }

std::int64_t rows_in_task(std::int64_t row_elements) { return std::max<std::int64_t>(1, kTaskElements / std::max<std::int64_t>(1, row_elements)); }

int tasks_for(std::int64_t rows, std::int64_t per_task) { return static_cast<int>((rows + per_task - 1) / per_task); }

// ---- Gather: rows of `inner` elements

struct Axis {
  std::size_t axis;
};

void infer_gather(InferContext& c) {
  c.expect_rank(0, 1, 64);
  expect_indices(c, 1);
  const Shape &x = c.shape(0), &indices = c.shape(1);
  const Axis p{static_cast<std::size_t>(normalise_axis(c.attributes().integer("axis", 0), c.rank(0)))};
  check_known_indices(c, 1, x[p.axis]);
  Shape y(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(p.axis));
  y.insert(y.end(), indices.begin(), indices.end());
  y.insert(y.end(), x.begin() + static_cast<std::ptrdiff_t>(p.axis) + 1, x.end());
  c.set_params(p);
  c.set_output(0, c.dtype(0), y);
}

Kernel cpu_gather(CpuContext& c) {
  const Shape& x = c.in[0].shape;
  const std::size_t axis = c.params<Axis>().axis;
  const std::int64_t outer = product(x, 0, axis), dim = x[axis], inner = product(x, axis + 1, x.size()), count = c.in[1].size();
  const std::int64_t rows = outer * count, per_task = rows_in_task(inner);
  const DType from = c.in[0].dtype, to = c.out[0].dtype, index_type = c.in[1].dtype;
  return Kernel::single("plain:gather", inner == 0 ? 0 : tasks_for(rows, per_task), [=](const KernelArgs& k, int task) {
    const Indices indices(index_type, k.in[1]);
    const auto* source = k.input<std::byte>(0);
    auto* target = k.output<std::byte>(0);
    const std::int64_t first = task * per_task, last = std::min(rows, first + per_task);
    const auto from_bytes = static_cast<std::int64_t>(size_of(from)), to_bytes = static_cast<std::int64_t>(size_of(to));
    for (std::int64_t r = first; r < last; ++r) {
      const std::int64_t row = r / count * dim + indices.at(r % count, dim);
      copy_elements(from, source + row * inner * from_bytes, to, target + r * inner * to_bytes, inner);
    }
  });
}

Rows rows_gather(const RowContext& c) {
  const bool first_axis = c.params<Axis>().axis == 0;
  if (!first_axis) return rows_of_first(c);
  const bool table = !c.inputs[0].is_batched() && c.inputs[1].is_batched();  // an embedding: each index picks a row of the same table
  return table ? c.inputs[1] : Rows::mixed();
}

// ---- GatherElements: along the axis, each element by its own index

void infer_gather_elements(InferContext& c) {
  c.expect_rank(0, 1, 16);
  expect_indices(c, 1);
  const Shape &x = c.shape(0), &indices = c.shape(1);
  const Axis p{static_cast<std::size_t>(normalise_axis(c.attributes().integer("axis", 0), c.rank(0)))};
  bool fits = indices.size() == x.size();
  for (std::size_t i = 0; fits && i < x.size(); ++i) fits = i == p.axis || indices[i] <= x[i];
  if (!fits)
    throw InvalidModel(fmt::format("indices of shape {} do not fit data of shape {} beside axis {}", to_string(indices), to_string(x), p.axis));
  check_known_indices(c, 1, x[p.axis]);
  c.set_params(p);
  c.set_output(0, c.dtype(0), indices);
}

Kernel cpu_gather_elements(CpuContext& c) {
  const std::size_t axis = c.params<Axis>().axis;
  auto from = c.in[0].strides();
  const std::int64_t dim = c.in[0].shape[axis], step = std::exchange(from[axis], 0);
  const StridedLoop loop(c.out[0].shape, {c.out[0].strides(), c.in[1].strides(), from});
  const DType index_type = c.in[1].dtype;
  return dispatch_width(size_of(c.in[0].dtype), [&](auto tag) {
    using T = decltype(tag);
    return Kernel::single("plain:gather_elements", loop.tasks(), [=](const KernelArgs& k, int task) {
      const Indices indices(index_type, k.in[1]);
      loop.for_each_run(task, [&](const std::int64_t* at, std::int64_t n) {
        const T* source = k.input<T>(0) + at[2];
        T* target = k.output<T>(0) + at[0];
        for (std::int64_t i = 0; i < n; ++i) target[i * loop.step(0)] = source[i * loop.step(2) + indices.at(at[1] + i * loop.step(1), dim) * step];
      });
    });
  });
}

Rows rows_gather_elements(const RowContext& c) {
  const bool rows = c.params<Axis>().axis != 0 && c.inputs[0].is_batched() && c.inputs[1].is_batched();
  return rows && c.inputs[0].per_sample == c.inputs[1].per_sample ? c.inputs[0] : Rows::mixed();
}

// ---- GatherND: rows of what follows the indexed axes

struct TupleIndex {
  std::size_t batch_dims, depth;  // an index tuple has `depth` values, for the axes after the batch ones
};

void infer_gather_nd(InferContext& c) {
  c.expect_rank(0, 1, 64);
  c.expect_rank(1, 1, 64);
  expect_indices(c, 1);
  const Shape &x = c.shape(0), &indices = c.shape(1);
  const std::int64_t batch_dims = c.attributes().integer("batch_dims", 0), depth = indices.back();
  const auto least = static_cast<std::int64_t>(std::min(x.size(), indices.size()));
  if (batch_dims < 0 || batch_dims >= least) throw InvalidModel(fmt::format("batch_dims {} is outside [0, {})", batch_dims, least));
  if (depth > c.rank(0) - batch_dims)
    throw InvalidModel(fmt::format("index tuples of {} values for data of shape {} after {} batch axes", depth, to_string(x), batch_dims));
  const TupleIndex p{static_cast<std::size_t>(batch_dims), static_cast<std::size_t>(depth)};
  if (!std::equal(x.begin(), x.begin() + batch_dims, indices.begin()))
    throw InvalidModel(fmt::format("data {} and indices {} differ in the {} batch axes", to_string(x), to_string(indices), batch_dims));
  Shape y(indices.begin(), indices.end() - 1);
  y.insert(y.end(), x.begin() + batch_dims + depth, x.end());
  c.set_params(p);
  c.set_output(0, c.dtype(0), y);
}

Kernel cpu_gather_nd(CpuContext& c) {
  const auto p = c.params<TupleIndex>();
  const Shape &x = c.in[0].shape, &indices = c.in[1].shape;
  const auto strides = row_major_strides(x);
  const std::int64_t inner = product(x, p.batch_dims + p.depth, x.size()), rows = product(indices, 0, indices.size() - 1);
  const std::int64_t batch_rows = product(indices, p.batch_dims, indices.size() - 1), batch_step = product(x, p.batch_dims, x.size());
  const std::int64_t per_task = rows_in_task(inner);
  const DType from = c.in[0].dtype, to = c.out[0].dtype, index_type = c.in[1].dtype;
  return Kernel::single("plain:gather_nd", inner == 0 ? 0 : tasks_for(rows, per_task), [=](const KernelArgs& k, int task) {
    const Indices index(index_type, k.in[1]);
    const std::int64_t first = task * per_task, last = std::min(rows, first + per_task);
    for (std::int64_t r = first; r < last; ++r) {
      std::int64_t at = r / batch_rows * batch_step;
      for (std::size_t d = 0; d < p.depth; ++d) {
        const std::size_t axis = p.batch_dims + d;
        at += index.at(r * static_cast<std::int64_t>(p.depth) + static_cast<std::int64_t>(d), x[axis]) * strides[axis];
      }
      copy_elements(from, k.input<std::byte>(0) + at * static_cast<std::int64_t>(size_of(from)), to,
                    k.output<std::byte>(0) + r * inner * static_cast<std::int64_t>(size_of(to)), inner);
    }
  });
}

Rows rows_gather_nd(const RowContext& c) {
  const bool table = !c.inputs[0].is_batched() && c.params<TupleIndex>().batch_dims == 0;
  if (table) return c.input_shape(1).size() > 1 ? c.inputs[1] : Rows::mixed();
  const bool rows = c.params<TupleIndex>().batch_dims > 0 && c.inputs[0].is_batched() && c.inputs[1].is_batched();
  return rows && c.inputs[0].per_sample == c.inputs[1].per_sample ? c.inputs[0] : Rows::mixed();
}

// ---- backward: what was read is added to, in the order of the indices

ValueId scatter_tuples(GradientContext& c, const Shape& to, ValueId tuples, ValueId v) {
  return c.emit("ScatterND", {zeros(c, v, to), tuples, v}, attribute("reduction", std::string("add")));
}

ValueId scatter_rows(GradientContext& c, const Shape& to, ValueId indices, ValueId v) {
  Shape tuples = c.shape(indices);
  tuples.push_back(1);
  return scatter_tuples(c, to, c.reshape(indices, tuples), v);
}

void gather_gradient(GradientContext& c) {
  const Shape x = c.shape(c.input(0)), indices = c.shape(c.input(1));
  const std::size_t axis = c.params<Axis>().axis, many = indices.size();
  if (axis == 0) return c.set(0, scatter_rows(c, x, c.input(1), c.dy()));
  // the indexed axes to the front, and the result's axis back
  std::vector<std::int64_t> front, back;
  for (std::size_t i = 0; i < many; ++i) front.push_back(static_cast<std::int64_t>(axis + i));
  for (std::size_t i = 0; i < axis; ++i) front.push_back(static_cast<std::int64_t>(i));
  for (std::size_t i = axis + many; i < x.size() - 1 + many; ++i) front.push_back(static_cast<std::int64_t>(i));
  for (std::size_t i = 0; i < x.size(); ++i) back.push_back(static_cast<std::int64_t>(i < axis ? i + 1 : i == axis ? 0 : i));
  Shape table = x;
  table.erase(table.begin() + static_cast<std::ptrdiff_t>(axis));
  table.insert(table.begin(), x[axis]);
  const ValueId moved = c.emit("Transpose", {c.dy()}, attribute("perm", std::move(front)));
  c.set(0, c.emit("Transpose", {scatter_rows(c, table, c.input(1), moved)}, attribute("perm", std::move(back))));
}

void gather_elements_gradient(GradientContext& c) {
  Attributes a = attribute("axis", static_cast<std::int64_t>(c.params<Axis>().axis));
  a.set("reduction", std::string("add"));
  c.set(0, c.emit("ScatterElements", {zeros(c, c.dy(), c.shape(c.input(0))), c.input(1), c.dy()}, std::move(a)));
}

// The place of every tuple along the batch axes.
Tensor batch_tuples(const Shape& indices, std::size_t batch_dims) {
  Shape s = indices;
  s.back() = static_cast<std::int64_t>(batch_dims);
  Tensor t(DType::kI64, s);
  s.pop_back();
  const auto strides = row_major_strides(s);
  auto values = t.as_mutable<std::int64_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t d = i % batch_dims;
    values[i] = static_cast<std::int64_t>(i / batch_dims) / strides[d] % s[d];
  }
  return t;
}

void gather_nd_gradient(GradientContext& c) {
  ValueId tuples = c.input(1);
  if (const std::size_t batch_dims = c.params<TupleIndex>().batch_dims; batch_dims > 0) {
    const Shape indices = c.shape(tuples);
    if (c.dtype(tuples) != DType::kI64) tuples = c.emit("Cast", {tuples}, attribute("to", dtype_to_onnx(DType::kI64)));
    tuples = c.emit("Concat", {c.constant(batch_tuples(indices, batch_dims)), tuples}, attribute("axis", std::int64_t{-1}));
  }
  c.set(0, scatter_tuples(c, c.shape(c.input(0)), tuples, c.dy()));
}

constexpr OpDef gathering(OpDef op) {
  op.min_inputs = op.max_inputs = 2;
  op.bf16 = Bf16Rule::kStore;
  return op;
}

}  // namespace

std::span<const OpDef> gather_ops() {
  static const OpDef ops[] = {
      gathering({.name = "Gather", .infer = infer_gather, .cpu = cpu_gather, .rows = rows_gather, .gradient = gather_gradient}),
      {.name = "GatherElements",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_gather_elements,
       .cpu = cpu_gather_elements,
       .rows = rows_gather_elements,
       .gradient = gather_elements_gradient},
      gathering({.name = "GatherND", .infer = infer_gather_nd, .cpu = cpu_gather_nd, .rows = rows_gather_nd, .gradient = gather_nd_gradient}),
      gather_sum_op(),
  };
  return ops;
}

}  // namespace tandem
