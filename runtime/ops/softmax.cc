<<<<<<< HEAD
// Softmax LogSoftmax Hardmax along one axis (opset 13). Sums are taken in double, in the order of the axis.
#include <algorithm>
#include <cmath>

#include "runtime/cpu/strided.h"
=======
// Softmax LogSoftmax Hardmax along one axis (the meaning since opset 13). A row, the elements along the axis, is gathered to plain
// memory, computed there and written back, so every layout and axis takes the same path.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/cpu/elementwise_hwy.h"
>>>>>>> 2985579 (Activations, Clip, PRelu and the softmax family: vectorised f32, any layout)
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

<<<<<<< HEAD
enum class Kind { kSoftmax, kLogSoftmax, kHardmax };

struct SoftmaxParams {
  std::size_t axis;
  Kind kind;
=======
struct AxisParams {
  std::size_t axis;
>>>>>>> 2985579 (Activations, Clip, PRelu and the softmax family: vectorised f32, any layout)
};

void infer(InferContext& c) {
  infer_unary(c, kFloatTypes);
<<<<<<< HEAD
  const std::string& op = c.node().op;
  const Kind kind = op == "Softmax" ? Kind::kSoftmax : op == "LogSoftmax" ? Kind::kLogSoftmax : Kind::kHardmax;
  const std::int64_t rank = c.rank(0);
  if (rank == 0) throw InvalidModel("operand 0 must have an axis to normalise over, is a scalar");
  c.set_params(SoftmaxParams{static_cast<std::size_t>(normalise_axis(c.attributes().integer("axis", -1), rank)), kind});
}

// One vector of n elements, `from` and `to` elements apart.
template <class T>
void one_vector(Kind kind, const T* x, std::int64_t from, T* y, std::int64_t to, std::int64_t n) {
  std::int64_t top = 0;
  for (std::int64_t i = 1; i < n; ++i) top = x[i * from] > x[top * from] ? i : top;
  if (kind == Kind::kHardmax) {
    for (std::int64_t i = 0; i < n; ++i) y[i * to] = i == top ? T{1} : T{0};
    return;
  }
  const T largest = x[top * from];
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const T e = std::exp(x[i * from] - largest);
    sum += static_cast<double>(e);
    if (kind == Kind::kSoftmax) y[i * to] = e;
  }
  if (kind == Kind::kSoftmax) {
    const T scale = static_cast<T>(1 / sum);
    for (std::int64_t i = 0; i < n; ++i) y[i * to] *= scale;
  } else {
    const T log_sum = static_cast<T>(std::log(sum));
    for (std::int64_t i = 0; i < n; ++i) y[i * to] = x[i * from] - largest - log_sum;
  }
}

template <class T>
Kernel kernel(const CpuContext& c) {
  const auto p = c.params<SoftmaxParams>();
  const TensorDesc &in = c.in[0], &out = c.out[0];
  Shape outer = out.shape;
  const std::int64_t n = outer[p.axis];
  outer[p.axis] = 1;
  const auto in_strides = in.strides(), out_strides = out.strides();
  const std::int64_t from = in_strides[p.axis], to = out_strides[p.axis];
  const StridedLoop loop(outer, {out_strides, in_strides}, std::max<std::int64_t>(1, kTaskElements / std::max<std::int64_t>(1, n)));
  return Kernel::single("plain", loop.tasks(), [loop, p, n, from, to, out](const KernelArgs& k, int task) {
    loop.for_each_run(task, [&](const std::int64_t* at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        one_vector(p.kind, k.input<T>(0) + at[1] + i * loop.step(1), from, k.output<T>(0) + at[0] + i * loop.step(0), to, n);
      }
    });
  });
}

Kernel cpu(CpuContext& c) {
  if (c.in[0].dtype == DType::kF64) return kernel<double>(c);
  if (c.in[0].dtype == DType::kF32) return kernel<float>(c);
  throw Unsupported(std::string("needs float32 or float64 operands, has ") + std::string(name_of(c.in[0].dtype)));
}

Rows rows(const RowContext& c) { return c.params<SoftmaxParams>().axis == 0 ? Rows::mixed() : rows_of_first(c); }

constexpr OpDef softmax(std::string_view name) {
=======
  c.set_params(AxisParams{static_cast<std::size_t>(normalise_axis(c.attributes().integer("axis", -1), c.rank(0)))});
}

Rows rows(const RowContext& c) { return c.params<AxisParams>().axis == 0 ? Rows::mixed() : rows_of_first(c); }

// x - the row's maximum, exponentiated; f64 by the library, f32 by the vectorised function.
void exponentials(const MapBody& exp, float* row, std::int64_t n) {
  const void* in[] = {row};
  exp(in, row, n);
}
void exponentials(const MapBody&, double* row, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) row[i] = std::exp(row[i]);
}

template <class T>
double sum_of(const T* row, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(row[i]);
  return sum;
}

// NaN anywhere in the row wins.
template <class T>
T maximum(const T* row, std::int64_t n) {
  T m = row[0];
  for (std::int64_t i = 1; i < n; ++i) m = row[i] > m || row[i] != row[i] ? row[i] : m;
  return m;
}

enum class Kind { kSoftmax, kLogSoftmax, kHardmax };

// `row` holds n elements and becomes the result; `other` has room for as many.
template <Kind kind, class T>
void compute(const MapBody& exp, T* row, T* other, std::int64_t n) {
  const T largest = maximum(row, n);
  if constexpr (kind == Kind::kHardmax) {
    const std::int64_t at = std::find(row, row + n, largest) - row;  // n for NaN: no element is 1
    for (std::int64_t i = 0; i < n; ++i) row[i] = i == at ? T{1} : T{0};
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) row[i] -= largest;
  if constexpr (kind == Kind::kSoftmax) {
    exponentials(exp, row, n);
    const T sum = static_cast<T>(sum_of(row, n));
    for (std::int64_t i = 0; i < n; ++i) row[i] /= sum;
  } else {
    std::copy_n(row, n, other);
    exponentials(exp, other, n);
    const T log_sum = static_cast<T>(std::log(sum_of(other, n)));
    for (std::int64_t i = 0; i < n; ++i) row[i] -= log_sum;
  }
}

// One row at a time; `rows` walks over all others' indices (output, input).
template <class Store>
struct RowKernel {
  using T = std::conditional_t<std::is_same_v<Store, double>, double, float>;
  StridedLoop loop;
  std::int64_t length, in_step, out_step;
  MapBody exp;
  TensorDesc out;

  template <Kind kind>
  void run(const KernelArgs& k, int task) const {
    auto* row = reinterpret_cast<T*>(k.scratch);
    loop.for_each_run(task, [&](const std::int64_t* offset, std::int64_t count) {
      for (std::int64_t r = 0; r < count; ++r) {
        const Store* from = k.input<Store>(0) + offset[1] + r * loop.step(1);
        Store* to = k.output<Store>(0) + offset[0] + r * loop.step(0);
        for (std::int64_t i = 0; i < length; ++i) row[i] = static_cast<T>(from[i * in_step]);
        compute<kind>(exp, row, row + length, length);
        for (std::int64_t i = 0; i < length; ++i) to[i * out_step] = static_cast<Store>(row[i]);
      }
    });
    // Gaps between pixels: every task clears its share of pixels, whichever rows it wrote.
    const std::int64_t share = (out.size() + loop.tasks() - 1) / loop.tasks();
    zero_gaps(out, k.out[0], task * share, std::min(out.size(), (task + 1) * share));
  }
};

template <Kind kind>
Kernel softmax(CpuContext& c) {
  const std::size_t axis = c.params<AxisParams>().axis;
  const TensorDesc &in = c.in[0], &out = c.out[0];
  auto in_steps = in.strides(), out_steps = out.strides();
  const std::int64_t length = in.shape[axis], in_step = in_steps[axis], out_step = out_steps[axis];
  Shape others = in.shape;
  if (length == 0) others = {0};
  if (length == 0) in_steps = out_steps = {1};
  if (length != 0) {
    for (auto* v : {&others, &in_steps, &out_steps}) v->erase(v->begin() + static_cast<std::ptrdiff_t>(axis));
  }
  const std::int64_t rows_per_task = std::max<std::int64_t>(1, kTaskElements / 4 / std::max<std::int64_t>(1, length));
  const StridedLoop loop(others, {out_steps, in_steps}, rows_per_task);
  Kernel kernel;
  dispatch(in.dtype, [&](auto tag) {
    using Store = decltype(tag);
    if constexpr (!std::is_integral_v<Store>) {
      RowKernel<Store> rows{loop, length, in_step, out_step, float_map(FloatMap::kExp), out};
      kernel = Kernel::single(std::is_same_v<Store, double> ? "plain" : "hwy", loop.tasks(),
                              [rows](const KernelArgs& k, int task) { rows.template run<kind>(k, task); });
      kernel.scratch_bytes = static_cast<std::size_t>(2 * length) * sizeof(typename RowKernel<Store>::T);
    }
  });
  kernel.in_place = 1;
  return kernel;
}

constexpr OpDef softmax_op(std::string_view name, Kernel (*cpu)(CpuContext&)) {
>>>>>>> 2985579 (Activations, Clip, PRelu and the softmax family: vectorised f32, any layout)
  OpDef op;
  op.name = name;
  op.infer = infer;
  op.cpu = cpu;
  op.rows = rows;
  op.layout = LayoutRule::kAny;
  return op;
}

}  // namespace

std::span<const OpDef> softmax_ops() {
<<<<<<< HEAD
  static const OpDef ops[] = {softmax("Softmax"), softmax("LogSoftmax"), softmax("Hardmax")};
=======
  static const OpDef ops[] = {
      softmax_op("Softmax", softmax<Kind::kSoftmax>),
      softmax_op("LogSoftmax", softmax<Kind::kLogSoftmax>),
      softmax_op("Hardmax", softmax<Kind::kHardmax>),
  };
>>>>>>> 2985579 (Activations, Clip, PRelu and the softmax family: vectorised f32, any layout)
  return ops;
}

}  // namespace tandem
