// OneHot and Trilu: a pattern of places that are set or kept.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/ops/families.h"
#include "runtime/ops/gradient_support.h"
#include "runtime/ops/movement.h"

namespace tandem {
namespace {

// ---- OneHot

struct OneHot {
  std::size_t axis;  // of the output
  std::int64_t depth;
};

void infer_one_hot(InferContext& c) {
  const Tensor& depth = c.host(1);
  if (depth.size() != 1) throw InvalidModel(fmt::format("depth must be one value, has shape {}", to_string(depth.shape())));
  const double value = depth.to_doubles()[0];
  if (!(value >= 1 && value < 0x1p53)) throw InvalidModel(fmt::format("depth must be at least 1, is {}", value));
  if (c.shape(2) != Shape{2}) throw InvalidModel(fmt::format("values must be [off, on], have shape {}", to_string(c.shape(2))));
  const OneHot p{static_cast<std::size_t>(normalise_axis(c.attributes().integer("axis", -1), c.rank(0) + 1)), static_cast<std::int64_t>(value)};
  Shape y = c.shape(0);
  y.insert(y.begin() + static_cast<std::ptrdiff_t>(p.axis), p.depth);
  c.set_params(p);
  c.set_output(0, c.dtype(2), y);
}

// The place that an index asks for; -1 when there is none (then all is off). Negative ones count from the end.
template <class T>
std::int64_t place(T given, std::int64_t depth) {
  if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T>) {
    return static_cast<std::uint64_t>(given) < static_cast<std::uint64_t>(depth) ? static_cast<std::int64_t>(given) : -1;
  } else if constexpr (std::is_integral_v<T>) {
    const auto v = static_cast<std::int64_t>(given);
    return v < -depth || v >= depth ? -1 : v < 0 ? v + depth : v;
  } else {
    double v = 0;
    if constexpr (std::is_floating_point_v<T>)
      v = given;
    else
      v = static_cast<float>(given);
    return std::abs(v) <= 0x1p53 ? place(static_cast<std::int64_t>(v), depth) : -1;
  }
}

Kernel cpu_one_hot(CpuContext& c) {
  const auto p = c.params<OneHot>();
  const Shape& x = c.in[0].shape;
  const std::int64_t outer = elements(std::span(x).first(p.axis)), inner = elements(std::span(x).subspan(p.axis)), block = p.depth * inner;
  const std::int64_t per_task = std::max<std::int64_t>(1, (1 << 15) / std::max<std::int64_t>(1, block));
  const int tasks = block == 0 ? 0 : static_cast<int>((outer + per_task - 1) / per_task);
  const DType index_type = c.in[0].dtype;
  return dispatch_width(size_of(c.out[0].dtype), [&](auto tag) {
    using T = decltype(tag);
    return Kernel::single("plain:one_hot", tasks, [=](const KernelArgs& k, int task) {
      const T off = k.input<T>(2)[0], on = k.input<T>(2)[1];
      const std::int64_t first = task * per_task, last = std::min(outer, first + per_task);
      std::fill(k.output<T>(0) + first * block, k.output<T>(0) + last * block, off);
      dispatch(index_type, [&](auto index_tag) {
        const auto* indices = k.input<decltype(index_tag)>(0);
        for (std::int64_t i = first * inner; i < last * inner; ++i) {
          const std::int64_t at = place(indices[i], p.depth);
          if (at >= 0) k.output<T>(0)[i / inner * block + at * inner + i % inner] = on;
        }
      });
    });
  });
}

Rows rows_one_hot(const RowContext& c) { return c.params<OneHot>().axis != 0 ? rows_of_first(c) : Rows::mixed(); }

// ---- Trilu

struct Triangle {
  bool upper;
  std::int64_t k;
};

void infer_trilu(InferContext& c) {
  c.expect_rank(0, 2, 64);
  Triangle p{c.attributes().integer("upper", 1) != 0, 0};
  if (c.has_input(1)) {
    const auto k = c.host_ints(1);
    if (k.size() != 1) throw InvalidModel(fmt::format("k must be one value, has {}", k.size()));
    const Shape& x = c.shape(0);
    p.k = std::clamp(k[0], -x[x.size() - 2] - 1, x.back() + 1);  // beyond that nothing changes
  }
  c.set_params(p);
  c.set_output(0, c.dtype(0), c.shape(0));
}

Kernel cpu_trilu(CpuContext& c) {
  const auto p = c.params<Triangle>();
  const Shape& x = c.in[0].shape;
  const std::int64_t columns = x.back(), height = x[x.size() - 2], rows = columns == 0 ? 0 : c.in[0].size() / columns;
  const std::int64_t per_task = std::max<std::int64_t>(1, (1 << 15) / std::max<std::int64_t>(1, columns));
  const auto width = static_cast<std::int64_t>(size_of(c.in[0].dtype));
  Kernel kernel = Kernel::single("plain:trilu", static_cast<int>((rows + per_task - 1) / per_task), [=](const KernelArgs& k, int task) {
    const std::int64_t last = std::min(rows, (task + 1) * per_task);
    for (std::int64_t r = task * per_task; r < last; ++r) {
      const std::int64_t edge = std::clamp<std::int64_t>(r % height + p.k + (p.upper ? 0 : 1), 0, columns);  // where the kept part begins or ends
      const std::int64_t from = p.upper ? edge : 0, count = p.upper ? columns - edge : edge;
      const std::byte* source = k.input<std::byte>(0) + r * columns * width;
      std::byte* target = k.output<std::byte>(0) + r * columns * width;
      if (source != target && count > 0) std::memcpy(target + from * width, source + from * width, static_cast<std::size_t>(count * width));
      if (count < columns) std::memset(target + (p.upper ? 0 : edge) * width, 0, static_cast<std::size_t>((columns - count) * width));
    }
  });
  kernel.in_place = 1;
  return kernel;
}

Rows rows_trilu(const RowContext& c) { return c.input_shape(0).size() > 2 ? rows_of_first(c) : Rows::mixed(); }

// Of the two values: what lies where none, and where the index points.
void one_hot_gradient(GradientContext& c) {
  const ValueId dy = c.dy();
  Tensor marks(DType::kBool, {2});
  marks.as_mutable<bool>()[1] = true;
  const ValueId hot = c.emit("OneHot", {c.input(0), c.input(1), c.constant(marks)}, c.attributes());
  const ValueId off = c.reshape(c.sum_to(only_else(c, hot, dy), {}), {1}), on = c.reshape(c.sum_to(only_where(c, hot, dy), {}), {1});
  c.set(2, c.emit("Concat", {off, on}, attribute("axis", std::int64_t{0})));
}

void trilu_gradient(GradientContext& c) {
  const auto& p = c.params<Triangle>();
  c.set(0, c.emit("Trilu", {c.dy(), c.ints({p.k})}, attribute("upper", std::int64_t{p.upper})));
}

}  // namespace

std::span<const OpDef> one_hot_ops() {
  static const OpDef ops[] = {
      {.name = "OneHot",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_one_hot,
       .cpu = cpu_one_hot,
       .host_inputs = 2,
       .rows = rows_one_hot,
       .gradient = one_hot_gradient},
      {.name = "Trilu", .max_inputs = 2, .infer = infer_trilu, .cpu = cpu_trilu, .host_inputs = 2, .rows = rows_trilu, .gradient = trilu_gradient},
  };
  return ops;
}

}  // namespace tandem
