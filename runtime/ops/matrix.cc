// Gemm and MatMul.
#include <fmt/format.h>

#include <cmath>

#include "runtime/graph/gradient.h"
#include "runtime/ops/families.h"
#include "runtime/ops/matrix_product.h"

namespace tandem {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF64, DType::kI32, DType::kU32, DType::kI64, DType::kU64};

// ---- MatMul

struct MatMulParams {
  Product product;
};

void infer_matmul(InferContext& c) {
  c.expect_dtype(0, kTypes);
  c.expect_same_dtype(0, 1);
  Shape out;
  MatMulParams p{matmul_product(c.shape(0), c.shape(1), &out)};
  c.set_output(0, c.dtype(0), std::move(out));
  c.set_params(std::move(p));
}

Kernel matmul_cpu(CpuContext& c) { return product_kernel(c, c.params<MatMulParams>().product, 0, 1, nullptr); }

// A batched operand must carry the batch as rows of A, or as the outermost of the result's batch dimensions.
Rows matmul_rows(const RowContext& c) {
  const Shape &a = c.input_shape(0), &b = c.input_shape(1), &out = c.output_shape();
  std::int64_t m = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const Shape &mine = i == 0 ? a : b, &other = i == 0 ? b : a;
    if (!c.inputs[i].is_batched()) {
      // An operand with as many dimensions must be the same for every row.
      if (mine.size() >= 3 && mine.size() == out.size() && mine[0] != 1) return Rows::mixed();
      continue;
    }
    const bool rows_of_a = i == 0 && mine.size() == 2 && other.size() <= 2;
    const bool outer = mine.size() >= 3 && mine.size() >= other.size();
    if (!rows_of_a && !outer) return Rows::mixed();
    if (m != 0 && m != c.inputs[i].per_sample) return Rows::mixed();
    m = c.inputs[i].per_sample;
  }
  return !out.empty() && out[0] == m * c.batch ? Rows::batched(m) : Rows::mixed();
}

// ---- Gemm

struct GemmParams {
  Product product;
  float alpha = 1, beta = 1;
  std::int64_t c_row_step = 0, c_column_step = 0;
};

void infer_gemm(InferContext& c) {
  c.expect_dtype(0, kTypes);
  c.expect_same_dtype(0, 1);
  c.expect_rank(0, 2, 2);
  c.expect_rank(1, 2, 2);
  const Shape &a = c.shape(0), &b = c.shape(1);
  const bool trans_a = c.attributes().integer("transA", 0) != 0, trans_b = c.attributes().integer("transB", 0) != 0;
  GemmParams g;
  g.alpha = c.attributes().real("alpha", 1);
  g.beta = c.attributes().real("beta", 1);
  Product& p = g.product;
  p.rows = a[trans_a ? 1 : 0];
  p.depth = a[trans_a ? 0 : 1];
  p.columns = b[trans_b ? 0 : 1];
  if (p.depth != b[trans_b ? 1 : 0]) {
    throw InvalidModel(fmt::format("A {}{} and B {}{} disagree about the summed dimension", to_string(a), trans_a ? " transposed" : "", to_string(b),
                                   trans_b ? " transposed" : ""));
  }
  p.a_row_step = trans_a ? 1 : p.depth;
  p.a_k_step = trans_a ? p.rows : 1;
  p.b_k_step = trans_b ? 1 : p.columns;
  p.b_column_step = trans_b ? p.depth : 1;
  if (c.has_input(2)) {
    c.expect_same_dtype(0, 2);
    const Shape& bias = c.shape(2);
    const std::int64_t rows = bias.size() == 2 ? bias[0] : 1, columns = bias.empty() ? 1 : bias.back();
    if (bias.size() > 2 || (rows != 1 && rows != p.rows) || (columns != 1 && columns != p.columns)) {
      throw InvalidModel(fmt::format("C must broadcast to [{}, {}], has shape {}", p.rows, p.columns, to_string(bias)));
    }
    g.c_row_step = rows == 1 ? 0 : columns;
    g.c_column_step = columns == 1 ? 0 : 1;
  }
  c.set_output(0, c.dtype(0), {p.rows, p.columns});
  c.set_params(std::move(g));
}

template <class T>
T scaled(T v, float by) {
  if constexpr (std::is_floating_point_v<T>)
    return v * by;
  else
    return by == 1 ? v : static_cast<T>(std::trunc(static_cast<double>(v) * by));
}
template <class T>
T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  else
    return a + b;
}

// y = alpha * y + beta * C on one block of sums, rows `stride` apart. T: type of the sums.
template <class T, class C = T>
void finish_block(const GemmParams& g, const KernelArgs& k, const ProductBlock& b, bool has_c, T* y, std::int64_t stride) {
  for (std::int64_t m = b.row; m < b.row + b.rows; ++m, y += stride) {
    if (g.alpha != 1) {
      for (std::int64_t n = 0; n < b.columns; ++n) y[n] = scaled(y[n], g.alpha);
    }
    if (!has_c || g.beta == 0) continue;
    const C* c = k.input<C>(2) + m * g.c_row_step + b.column * g.c_column_step;
    for (std::int64_t n = 0; n < b.columns; ++n) y[n] = sum(y[n], scaled(static_cast<T>(c[n * g.c_column_step]), g.beta));
  }
}

Kernel gemm_cpu(CpuContext& c) {
  const auto& g = c.params<GemmParams>();
  const bool has_c = c.has_input(2);
  const bool plain_bias = has_c && g.alpha == 1 && g.beta == 1 && g.c_row_step == 0 && g.c_column_step == 1;
  const bool half_c = has_c && c.in[2].dtype == DType::kBF16;
  if (plain_bias && c.in[2].dtype == DType::kF32) return product_kernel(c, g.product, 0, 1, nullptr, 2);
  ProductEpilogue epilogue;
  if (g.alpha != 1 || (has_c && g.beta != 0)) {
    epilogue = [g, has_c, half_c, type = sum_type(c.in[0].dtype)](const KernelArgs& k, const ProductBlock& b, void* sums, std::int64_t stride) {
      if (half_c) return finish_block<float, BFloat16>(g, k, b, true, static_cast<float*>(sums), stride);
      dispatch(type, [&](auto tag) {
        using T = decltype(tag);
        if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || (std::is_integral_v<T> && sizeof(T) >= 4))
          finish_block<T>(g, k, b, has_c, static_cast<T*>(sums), stride);
      });
    };
  }
  return product_kernel(c, g.product, 0, 1, std::move(epilogue));
}

Rows gemm_rows(const RowContext& c) {
  const auto& g = c.params<GemmParams>();
  if (!c.inputs[0].is_batched() || c.inputs[1].is_batched() || g.product.a_k_step != 1) return Rows::mixed();
  if (c.inputs.size() > 2 && c.node.inputs[2] != kNoValue) {
    const Shape& bias = c.input_shape(2);
    const bool own_rows = bias.size() == 2 && bias[0] != 1;
    if (c.inputs[2].is_batched() ? bias.size() != 2 || c.inputs[2].per_sample != c.inputs[0].per_sample : own_rows) return Rows::mixed();
  }
  return c.inputs[0];
}

// ---- gradients

// a^T b for a [rows, m] and b [rows, n]: what a convolution of one tap on images of one pixel does for its weights, without a transposed copy.
ValueId product_over_rows(GradientContext& c, ValueId a, ValueId b) {
  const Shape left = c.shape(a), right = c.shape(b);
  Attributes one_tap;
  one_tap.set("kernel_shape", std::vector<std::int64_t>{1});
  const ValueId images = c.reshape(b, {right[0], right[1], 1}), outputs = c.reshape(a, {left[0], left[1], 1});
  return c.reshape(c.emit("ConvGradWeight", {images, outputs}, one_tap), {left[1], right[1]});
}

ValueId product(GradientContext& c, ValueId a, bool trans_a, ValueId b, bool trans_b) {
  Attributes t;
  t.set("transA", std::int64_t{trans_a});
  t.set("transB", std::int64_t{trans_b});
  return c.emit("Gemm", {a, b}, t);
}

ValueId times(GradientContext& c, ValueId v, float by) { return by == 1 ? v : c.emit("Mul", {v, c.number(by)}); }

void gemm_gradient(GradientContext& c) {
  const auto& g = c.params<GemmParams>();
  const bool trans_a = c.attributes().integer("transA", 0) != 0, trans_b = c.attributes().integer("transB", 0) != 0;
  if (c.wants(2)) c.set_summed(2, times(c, c.dy(), g.beta));
  if (!c.wants(0) && !c.wants(1)) return;
  const ValueId dy = times(c, c.dy(), g.alpha), a = c.input(0), b = c.input(1);
  if (c.wants(0)) c.set(0, trans_a ? product(c, b, trans_b, dy, true) : product(c, dy, false, b, !trans_b));
  if (!c.wants(1)) return;
  if (trans_a)
    c.set(1, trans_b ? product(c, dy, true, a, true) : product(c, a, false, dy, false));
  else
    c.set(1, trans_b ? product_over_rows(c, dy, a) : product_over_rows(c, a, dy));
}

ValueId transposed(GradientContext& c, ValueId v) {
  std::vector<std::int64_t> perm(c.shape(v).size());
  for (std::size_t d = 0; d < perm.size(); ++d) perm[d] = static_cast<std::int64_t>(d);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  Attributes a;
  a.set("perm", perm);
  return c.emit("Transpose", {v}, a);
}

void matmul_gradient(GradientContext& c) {
  // 1-D operands are a row and a column.
  Shape as = c.shape(c.input(0)), bs = c.shape(c.input(1)), ys = c.shape(c.dy());
  const bool row = as.size() == 1, column = bs.size() == 1;
  if (row) as.insert(as.begin(), 1);
  if (column) bs.push_back(1);
  if (row) ys.insert(ys.end() - (column ? 0 : 1), 1);
  if (column) ys.push_back(1);
  const ValueId a = c.reshape(c.input(0), as), b = c.reshape(c.input(1), bs), dy = c.reshape(c.dy(), ys);
  if (bs.size() == 2) {  // one matrix for all
    const Shape rows{elements(std::span(as).first(as.size() - 1)), ys.back()};
    const ValueId dy_rows = c.reshape(dy, rows);
    if (c.wants(0)) c.set(0, c.reshape(product(c, dy_rows, false, b, true), c.shape(c.input(0))));
    if (c.wants(1)) c.set(1, c.reshape(product_over_rows(c, c.reshape(a, {rows[0], as.back()}), dy_rows), c.shape(c.input(1))));
    return;
  }
  if (c.wants(0)) c.set(0, c.reshape(c.sum_to(c.emit("MatMul", {dy, transposed(c, b)}), as), c.shape(c.input(0))));
  if (c.wants(1)) c.set(1, c.reshape(c.sum_to(c.emit("MatMul", {transposed(c, a), dy}), bs), c.shape(c.input(1))));
}

}  // namespace

std::span<const OpDef> matrix_ops() {
  static const OpDef ops[] = {
      {.name = "Gemm",
       .min_inputs = 2,
       .max_inputs = 3,
       .infer = infer_gemm,
       .cpu = gemm_cpu,
       .data_inputs = 3,
       .rows = gemm_rows,
       .bf16 = Bf16Rule::kProduct,
       .gradient = gemm_gradient},
      {.name = "MatMul",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_matmul,
       .cpu = matmul_cpu,
       .data_inputs = 3,
       .rows = matmul_rows,
       .bf16 = Bf16Rule::kProduct,
       .gradient = matmul_gradient},
  };
  return ops;
}

}  // namespace tandem
