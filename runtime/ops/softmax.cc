// Softmax LogSoftmax Hardmax along one axis (opset 13). Sums are taken in double, in the order of the axis.
#include <algorithm>
#include <cmath>

#include "runtime/ops/along_axis.h"
#include "runtime/ops/families.h"
#include "runtime/ops/gradient_support.h"
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

Kernel cpu(CpuContext& c) {
  const auto p = c.params<SoftmaxParams>();
  return float_kernel(c, [&](auto tag) {
    using T = decltype(tag);
    return along_axis<T>(c, p.axis,
                         [p](const T* x, std::int64_t from, T* y, std::int64_t to, std::int64_t n) { one_vector(p.kind, x, from, y, to, n); });
  });
}

Rows rows(const RowContext& c) { return c.params<SoftmaxParams>().axis == 0 ? Rows::mixed() : rows_of_first(c); }

ValueId sum_along_axis(GradientContext& c, ValueId v) {
  return c.emit("ReduceSum", {v, c.ints({static_cast<std::int64_t>(c.params<SoftmaxParams>().axis)})});
}

// y (dy - sum(dy y)); for the logarithm dy - e^y sum(dy).
void gradient(GradientContext& c) {
  const ValueId dy = c.dy(), y = c.output();
  const Kind kind = c.params<SoftmaxParams>().kind;
  if (kind == Kind::kSoftmax) {
    c.set(0, c.emit("Mul", {y, c.emit("Sub", {dy, sum_along_axis(c, c.emit("Mul", {dy, y}))})}));
  } else if (kind == Kind::kLogSoftmax) {
    c.set(0, c.emit("Sub", {dy, c.emit("Mul", {c.emit("Exp", {y}), sum_along_axis(c, dy)})}));
  }
}

constexpr OpDef softmax(std::string_view name) {
  OpDef op;
  op.name = name;
  op.infer = infer;
  op.cpu = cpu;
  op.rows = rows;
  op.layout = LayoutRule::kAny;
  op.gradient = gradient;
  return op;
}

}  // namespace

std::span<const OpDef> softmax_ops() {
  static const OpDef ops[] = {softmax("Softmax"), softmax("LogSoftmax"), softmax("Hardmax")};
  return ops;
}

}  // namespace tandem
