// Softmax LogSoftmax Hardmax along one axis (opset 13). Sums are taken in double, in the order of the axis.
#include <algorithm>
#include <cmath>

#include "runtime/cpu/strided.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

enum class Kind { kSoftmax, kLogSoftmax, kHardmax };

struct SoftmaxParams {
  std::size_t axis;
  Kind kind;
};

void infer(InferContext& c) {
  infer_unary(c, kFloatTypes);
  const std::string& op = c.node().op;
  const Kind kind = op == "Softmax" ? Kind::kSoftmax : op == "LogSoftmax" ? Kind::kLogSoftmax : Kind::kHardmax;
  const std::int64_t rank = c.rank(0);
  // The standard's axis lies in [-rank, rank-1]; its shape inference and ONNX Runtime refuse scalars as well.
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
  static const OpDef ops[] = {softmax("Softmax"), softmax("LogSoftmax"), softmax("Hardmax")};
  return ops;
}

}  // namespace tandem
