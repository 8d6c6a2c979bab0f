// ArgMax ArgMin CumSum: along one axis.
#include <cmath>

#include "runtime/ops/along_axis.h"
#include "runtime/ops/families.h"
#include "runtime/ops/gradient_support.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

struct ArgParams {
  std::size_t axis;
  bool keep, last, smallest;
};

void infer_arg(InferContext& c) {
  c.expect_dtype(0, kNumericTypes);
  ArgParams p;
  p.axis = static_cast<std::size_t>(normalise_axis(c.attributes().integer("axis", 0), c.rank(0)));
  p.keep = c.attributes().integer("keepdims", 1) != 0;
  p.last = c.attributes().integer("select_last_index", 0) != 0;
  p.smallest = c.node().op == "ArgMin";
  Shape out = c.shape(0);
  if (out[p.axis] == 0) throw InvalidModel("axis " + std::to_string(p.axis) + " of shape " + to_string(out) + " has no elements to choose from");
  out[p.axis] = 1;
  if (!p.keep) out.erase(out.begin() + static_cast<std::ptrdiff_t>(p.axis));
  c.set_output(0, DType::kI64, std::move(out));
  c.set_params(p);
}

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(v);
  else
    return false;
}

// A NaN is the largest and the smallest, as in numpy.
template <class T>
std::int64_t best(const ArgParams& p, const T* x, std::int64_t step, std::int64_t n) {
  std::int64_t at = 0;
  for (std::int64_t i = 1; i < n; ++i) {
    const T v = x[i * step], top = x[at * step];
    const bool better = is_nan(v) ? !is_nan(top) : p.smallest ? v < top : v > top;
    if (better || (p.last && (v == top || (is_nan(v) && is_nan(top))))) at = i;
  }
  return at;
}

Kernel arg(CpuContext& c) {
  const auto p = c.params<ArgParams>();
  const auto in_strides = c.in[0].strides();
  auto to = c.out[0].strides();
  if (!p.keep) to.insert(to.begin() + static_cast<std::ptrdiff_t>(p.axis), 0);
  Shape outer = c.in[0].shape;
  const std::int64_t n = outer[p.axis], step = in_strides[p.axis];
  outer[p.axis] = 1;
  const StridedLoop loop(outer, {to, in_strides}, std::max<std::int64_t>(1, kTaskElements / n));
  Kernel kernel;
  dispatch(c.in[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_arithmetic_v<T>) {
      kernel = Kernel::single("plain", loop.tasks(), [loop, p, n, step](const KernelArgs& k, int task) {
        loop.for_each_run(task, [&](const std::int64_t* at, std::int64_t count) {
          for (std::int64_t i = 0; i < count; ++i) {
            k.output<std::int64_t>(0)[at[0] + i * loop.step(0)] = best(p, k.input<T>(0) + at[1] + i * loop.step(1), step, n);
          }
        });
      });
    } else {
      throw Unsupported(std::string("needs float32, float64 or integer operands, has ") + std::string(name_of(c.in[0].dtype)));
    }
  });
  return kernel;
}

Rows rows_of_arg(const RowContext& c) { return c.params<ArgParams>().axis == 0 ? Rows::mixed() : rows_of_first(c); }

struct CumSumParams {
  std::size_t axis;
  bool exclusive, reverse;
};

void infer_cumsum(InferContext& c) {
  infer_unary(c, kNumericTypes);
  const auto axis = c.host_ints(1);
  if (axis.size() != 1) throw InvalidModel("operand 1 (axis) must be one integer");
  c.set_params(CumSumParams{static_cast<std::size_t>(normalise_axis(axis[0], c.rank(0))), c.attributes().integer("exclusive", 0) != 0,
                            c.attributes().integer("reverse", 0) != 0});
}

template <class T>
void sum_vector(const CumSumParams& p, const T* x, std::int64_t from, T* y, std::int64_t to, std::int64_t n) {
  std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t> sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t e = p.reverse ? n - 1 - i : i;
    const auto next = sum + static_cast<decltype(sum)>(x[e * from]);
    y[e * to] = static_cast<T>(p.exclusive ? sum : next);
    sum = next;
  }
}

Kernel cumsum(CpuContext& c) {
  const auto p = c.params<CumSumParams>();
  return dispatch(c.in[0].dtype, [&](auto tag) -> Kernel {
    using T = decltype(tag);
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
      return along_axis<T>(c, p.axis,
                           [p](const T* x, std::int64_t from, T* y, std::int64_t to, std::int64_t n) { sum_vector(p, x, from, y, to, n); });
    else
      throw Unsupported(std::string("needs float32, float64 or integer operands, has ") + std::string(name_of(c.in[0].dtype)));
  });
}

Rows rows_of_cumsum(const RowContext& c) { return c.params<CumSumParams>().axis == 0 ? Rows::mixed() : rows_of_first(c); }

void cumsum_gradient(GradientContext& c) {
  const auto& p = c.params<CumSumParams>();
  Attributes a = attribute("exclusive", std::int64_t{p.exclusive});
  a.set("reverse", std::int64_t{!p.reverse});
  c.set(0, c.emit("CumSum", {c.dy(), c.ints({static_cast<std::int64_t>(p.axis)})}, std::move(a)));
}

}  // namespace

std::span<const OpDef> arg_ops() {
  static const OpDef ops[] = {
      {.name = "ArgMax", .infer = infer_arg, .cpu = arg, .rows = rows_of_arg, .layout = LayoutRule::kAny},
      {.name = "ArgMin", .infer = infer_arg, .cpu = arg, .rows = rows_of_arg, .layout = LayoutRule::kAny},
      {.name = "CumSum",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_cumsum,
       .cpu = cumsum,
       .host_inputs = 2,
       .rows = rows_of_cumsum,
       .layout = LayoutRule::kAny,
       .gradient = cumsum_gradient},
  };
  return ops;
}

}  // namespace tandem
