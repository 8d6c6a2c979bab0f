// LRN and LpNormalization: sums along one axis.
#include <cmath>

#include "runtime/graph/gradient.h"
#include "runtime/ops/along_axis.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

struct LrnParams {
  std::int64_t size;
  float alpha, beta, bias;
};

void infer_lrn(InferContext& c) {
  infer_unary(c, kFloatTypes);
  c.expect_rank(0, 2, 8);
  const LrnParams p{c.attributes().integer("size"), c.attributes().real("alpha", 1e-4f), c.attributes().real("beta", 0.75f),
                    c.attributes().real("bias", 1.0f)};
  if (p.size < 1) throw InvalidModel("attribute size must be at least 1, is " + std::to_string(p.size));
  c.set_params(p);
}

// y_c = x_c / (bias + alpha / size * sum of x_k^2)^beta, k from c - floor((size-1)/2) to c + ceil((size-1)/2) within the channels.
template <class T>
void lrn_vector(const LrnParams& p, const T* x, std::int64_t from, T* y, std::int64_t to, std::int64_t n) {
  const std::int64_t before = (p.size - 1) / 2, after = p.size - 1 - before;
  for (std::int64_t c = 0; c < n; ++c) {
    double sum = 0;
    for (std::int64_t k = std::max<std::int64_t>(0, c - before); k <= std::min(n - 1, c + after); ++k)
      sum += static_cast<double>(x[k * from]) * static_cast<double>(x[k * from]);
    y[c * to] = static_cast<T>(static_cast<double>(x[c * from]) / std::pow(p.bias + p.alpha / static_cast<double>(p.size) * sum, p.beta));
  }
}

struct LpParams {
  std::size_t axis;
  std::int64_t p;
};

void infer_lp(InferContext& c) {
  infer_unary(c, kFloatTypes);
  const LpParams p{static_cast<std::size_t>(normalise_axis(c.attributes().integer("axis", -1), c.rank(0))), c.attributes().integer("p", 2)};
  if (p.p != 1 && p.p != 2) throw InvalidModel("attribute p must be 1 or 2, is " + std::to_string(p.p));
  c.set_params(p);
}

// A vector of zeros stays zero, as the standard's text says and ONNX Runtime does (ONNX's reference evaluator divides by zero).
template <class T>
void lp_vector(const LpParams& p, const T* x, std::int64_t from, T* y, std::int64_t to, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i)
    sum += p.p == 1 ? std::abs(static_cast<double>(x[i * from])) : static_cast<double>(x[i * from]) * static_cast<double>(x[i * from]);
  const double norm = p.p == 1 ? sum : std::sqrt(sum);
  for (std::int64_t i = 0; i < n; ++i) y[i * to] = norm == 0 ? T{0} : static_cast<T>(static_cast<double>(x[i * from]) / norm);
}

Kernel lrn(CpuContext& c) {
  const auto p = c.params<LrnParams>();
  return float_kernel(c, [&](auto tag) {
    using T = decltype(tag);
    return along_axis<T>(c, 1, [p](const T* x, std::int64_t from, T* y, std::int64_t to, std::int64_t n) { lrn_vector(p, x, from, y, to, n); });
  });
}

Kernel lp(CpuContext& c) {
  const auto p = c.params<LpParams>();
  return float_kernel(c, [&](auto tag) {
    using T = decltype(tag);
    return along_axis<T>(c, p.axis, [p](const T* x, std::int64_t from, T* y, std::int64_t to, std::int64_t n) { lp_vector(p, x, from, y, to, n); });
  });
}

// The gradients' operands are x and dy.
void infer_grad(InferContext& c, void (*infer)(InferContext&)) {
  infer(c);
  c.expect_same_dtype(0, 1);
  if (c.shape(1) != c.shape(0)) throw InvalidModel("dy has shape " + to_string(c.shape(1)) + ", x " + to_string(c.shape(0)));
}
void infer_lrn_grad(InferContext& c) { infer_grad(c, infer_lrn); }
void infer_lp_grad(InferContext& c) { infer_grad(c, infer_lp); }

// n neighbours along an axis, `step` elements apart.
template <class T>
struct Vector {
  T* data;
  std::int64_t step;
  double operator[](std::int64_t i) const { return static_cast<double>(data[i * step]); }
};

// dx_j = dy_j t_j^-beta - 2 alpha beta / size * x_j * sum of dy_c x_c t_c^(-beta-1) over all c in whose window j lies; t as above.
template <class T>
void lrn_grad_vector(const LrnParams& p, Vector<const T> x, Vector<const T> dy, Vector<T> dx, std::int64_t n, double* scratch) {
  const std::int64_t before = (p.size - 1) / 2, after = p.size - 1 - before;
  const double share = static_cast<double>(p.alpha) / static_cast<double>(p.size), beta = static_cast<double>(p.beta);
  double *power = scratch, *pulled = scratch + n;
  for (std::int64_t c = 0; c < n; ++c) {
    double sum = 0;
    for (std::int64_t k = std::max<std::int64_t>(0, c - before); k <= std::min(n - 1, c + after); ++k) sum += x[k] * x[k];
    const double t = static_cast<double>(p.bias) + share * sum;
    power[c] = std::pow(t, -beta);
    pulled[c] = dy[c] * x[c] * power[c] / t;
  }
  for (std::int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (std::int64_t c = std::max<std::int64_t>(0, j - after); c <= std::min(n - 1, j + before); ++c) sum += pulled[c];
    dx.data[j * dx.step] = static_cast<T>(dy[j] * power[j] - 2 * share * beta * x[j] * sum);
  }
}

// p = 2: (dy - y * sum of dy * y) / norm, p = 1: (dy - sign(x) * sum of dy * y) / norm. Where the norm has no gradient it is taken as 0.
template <class T>
void lp_grad_vector(const LpParams& p, Vector<const T> x, Vector<const T> dy, Vector<T> dx, std::int64_t n) {
  double sum = 0, product = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += p.p == 1 ? std::abs(x[i]) : x[i] * x[i];
    product += dy[i] * x[i];
  }
  const double norm = p.p == 1 ? sum : std::sqrt(sum);
  for (std::int64_t i = 0; i < n; ++i) {
    const double slope = p.p == 1 ? static_cast<double>((x[i] > 0) - (x[i] < 0)) : x[i] / norm;
    dx.data[i * dx.step] = norm == 0 ? T{0} : static_cast<T>((dy[i] - slope * (product / norm)) / norm);
  }
}

// vector(x, dy, dx, n, scratch) for every vector along `axis`; scratch: 2 n doubles.
template <class T, class F>
Kernel grad_along_axis(const CpuContext& c, std::size_t axis, F vector) {
  Shape outer = c.in[0].shape;
  const std::int64_t n = outer[axis], x_step = c.in[0].strides()[axis], dy_step = c.in[1].strides()[axis], dx_step = c.out[0].strides()[axis];
  outer[axis] = 1;
  const StridedLoop loop(outer, {c.out[0].strides(), c.in[0].strides(), c.in[1].strides()},
                         std::max<std::int64_t>(1, kTaskElements / std::max<std::int64_t>(1, n)));
  Kernel k = Kernel::single("plain", loop.tasks(), [=](const KernelArgs& a, int task) {
    loop.for_each_run(task, [&](const std::int64_t* at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        vector(Vector<const T>{a.input<T>(0) + at[1] + i * loop.step(1), x_step}, Vector<const T>{a.input<T>(1) + at[2] + i * loop.step(2), dy_step},
               Vector<T>{a.output<T>(0) + at[0] + i * loop.step(0), dx_step}, n, reinterpret_cast<double*>(a.scratch));
      }
    });
  });
  k.scratch_bytes = static_cast<std::size_t>(2 * n) * sizeof(double);
  return k;
}

Kernel lrn_grad(CpuContext& c) {
  const auto p = c.params<LrnParams>();
  return float_kernel(c, [&](auto tag) {
    using T = decltype(tag);
    return grad_along_axis<T>(c, 1, [p](Vector<const T> x, Vector<const T> dy, Vector<T> dx, std::int64_t n, double* scratch) {
      lrn_grad_vector(p, x, dy, dx, n, scratch);
    });
  });
}

Kernel lp_grad(CpuContext& c) {
  const auto p = c.params<LpParams>();
  return float_kernel(c, [&](auto tag) {
    using T = decltype(tag);
    return grad_along_axis<T>(c, p.axis,
                              [p](Vector<const T> x, Vector<const T> dy, Vector<T> dx, std::int64_t n, double*) { lp_grad_vector(p, x, dy, dx, n); });
  });
}

void gradient(GradientContext& g) { g.set(0, g.emit(g.node().op + "Grad", {g.input(0), g.dy()}, g.attributes())); }

Rows rows_of_lp(const RowContext& c) { return c.params<LpParams>().axis == 0 ? Rows::mixed() : rows_of_first(c); }

}  // namespace

std::span<const OpDef> lrn_ops() {
  static const OpDef ops[] = {
      {.name = "LRN", .infer = infer_lrn, .cpu = lrn, .rows = rows_of_first, .layout = LayoutRule::kAny, .gradient = gradient},
      {.name = "LpNormalization", .infer = infer_lp, .cpu = lp, .rows = rows_of_lp, .layout = LayoutRule::kAny, .gradient = gradient},
      {.name = "LRNGrad",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_lrn_grad,
       .cpu = lrn_grad,
       .data_inputs = 0b11,
       .layout = LayoutRule::kAny},
      {.name = "LpNormalizationGrad",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_lp_grad,
       .cpu = lp_grad,
       .data_inputs = 0b11,
       .layout = LayoutRule::kAny},
  };
  return ops;
}

}  // namespace tandem
