// LRN and LpNormalization: sums along one axis.
#include <cmath>

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

Rows rows_of_lp(const RowContext& c) { return c.params<LpParams>().axis == 0 ? Rows::mixed() : rows_of_first(c); }

}  // namespace

std::span<const OpDef> lrn_ops() {
  static const OpDef ops[] = {
      {.name = "LRN", .infer = infer_lrn, .cpu = lrn, .rows = rows_of_first, .layout = LayoutRule::kAny},
      {.name = "LpNormalization", .infer = infer_lp, .cpu = lp, .rows = rows_of_lp, .layout = LayoutRule::kAny},
  };
  return ops;
}

}  // namespace tandem
