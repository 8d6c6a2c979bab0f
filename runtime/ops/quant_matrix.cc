// MatMulInteger and QLinearMatMul: sums of (a - zero point) * (b - zero point) in int32.
#include <fmt/format.h>

#include "runtime/ops/families.h"
#include "runtime/ops/matrix_product.h"
#include "runtime/ops/requantize.h"

namespace tandem {
namespace {

struct QuantMatMulParams {
  Product product;
  std::int64_t row_zero_points = 1, column_zero_points = 1;  // elements of the operands' zero points
};

// Operands of the two forms: data and zero points, in the order of the node.
struct Places {
  std::size_t a, a_zero, b, b_zero;
};
constexpr Places kInteger{0, 2, 1, 3}, kLinear{0, 2, 3, 5};

std::int64_t count(const InferContext& c, std::size_t i) { return c.has_input(i) ? elements(c.shape(i)) : 1; }

QuantMatMulParams parse(InferContext& c, const Places& at, Shape* out) {
  expect_bytes(c, at.a);
  expect_bytes(c, at.b);
  QuantMatMulParams p{matmul_product(c.shape(at.a), c.shape(at.b), out)};
  // Rows of A may only have their own zero points where A is one matrix.
  expect_zero_point(c, at.a_zero, at.a, c.rank(at.a) == 2 ? c.shape(at.a)[0] : 0);
  expect_zero_point(c, at.b_zero, at.b, c.rank(at.b) >= 2 ? p.product.columns : 0);
  p.row_zero_points = count(c, at.a_zero);
  p.column_zero_points = count(c, at.b_zero);
  return p;
}

void infer_integer(InferContext& c) {
  Shape out;
  auto p = parse(c, kInteger, &out);
  c.set_output(0, DType::kI32, std::move(out));
  c.set_params(std::move(p));
}

void infer_linear(InferContext& c) {
  Shape out;
  auto p = parse(c, kLinear, &out);
  expect_scale(c, 1, p.row_zero_points > 1 ? p.row_zero_points : 0);
  expect_scale(c, 4, c.rank(3) >= 2 ? p.product.columns : 0);
  expect_scale(c, 6, 0);
  expect_bytes(c, 7);
  expect_zero_point(c, 7, 7, 0);
  c.set_output(0, c.dtype(7), std::move(out));
  c.set_params(std::move(p));
}

// sums[n] of one row of a block; T: type of B.
template <class T>
void row_sums(const Product& p, const Bytes8& a, std::int64_t a_first, std::int32_t a_zero, const T* b, const Bytes8& b_zero,
              const ProductBlock& block, std::uint32_t* sums) {
  std::fill_n(sums, block.columns, 0u);
  for (std::int64_t k = 0; k < p.depth; ++k) {
    const auto v = static_cast<std::uint32_t>(a.at(a_first + k) - a_zero);
    const T* row = b + k * p.columns + block.column;
    for (std::int64_t n = 0; n < block.columns; ++n) {
      sums[n] += v * static_cast<std::uint32_t>(std::int32_t{row[n]} - b_zero.at(block.column + n));
    }
  }
}

// finish(args, row, column, sums, count) stores one row's sums.
template <class Finish>
Kernel kernel_of(CpuContext& c, const Places& at, Finish finish) {
  const auto& params = c.params<QuantMatMulParams>();
  const Product p = params.product;
  const ProductCut cut(p, 64);
  const std::vector<TensorDesc> in = c.in;
  const auto desc = [in](std::size_t i) { return i < in.size() ? in[i] : TensorDesc{}; };
  const TensorDesc a_desc = desc(at.a), b_desc = desc(at.b), a_zero_desc = desc(at.a_zero), b_zero_desc = desc(at.b_zero);
  Kernel kernel = Kernel::single("plain", cut.tasks(), [=](const KernelArgs& k, int task) {
    const ProductBlock block = cut.block(task);
    const auto [a_matrix, b_matrix] = p.matrices(block.batch);
    Bytes8 a = Bytes8::of(k, at.a, a_desc);
    a.one_value = false;
    const Bytes8 a_zero = Bytes8::of(k, at.a_zero, a_zero_desc), b_zero = Bytes8::of(k, at.b_zero, b_zero_desc);
    auto* sums = reinterpret_cast<std::uint32_t*>(k.scratch);
    const std::int64_t b_first = b_matrix * p.depth * p.columns;
    for (std::int64_t m = block.row; m < block.row + block.rows; ++m) {
      const std::int64_t a_first = (a_matrix * p.rows + m) * p.depth;
      if (b_desc.dtype == DType::kI8) {
        row_sums(p, a, a_first, a_zero.at(m), k.input<std::int8_t>(at.b) + b_first, b_zero, block, sums);
      } else {
        row_sums(p, a, a_first, a_zero.at(m), k.input<std::uint8_t>(at.b) + b_first, b_zero, block, sums);
      }
      finish(k, block.batch * p.rows + m, m, block, sums);
    }
  });
  kernel.scratch_bytes = static_cast<std::size_t>(p.columns) * sizeof(std::uint32_t);
  return kernel;
}

Kernel integer_cpu(CpuContext& c) {
  const std::int64_t columns = c.params<QuantMatMulParams>().product.columns;
  return kernel_of(c, kInteger, [columns](const KernelArgs& k, std::int64_t row, std::int64_t, const ProductBlock& b, const std::uint32_t* sums) {
    auto* y = k.output<std::int32_t>(0) + row * columns + b.column;
    for (std::int64_t n = 0; n < b.columns; ++n) y[n] = static_cast<std::int32_t>(sums[n]);
  });
}

Kernel linear_cpu(CpuContext& c) {
  const std::int64_t columns = c.params<QuantMatMulParams>().product.columns;
  const bool is_signed = c.out[0].dtype == DType::kI8, per_row = c.in[1].size() > 1, per_column = c.in[4].size() > 1;
  const TensorDesc zero = c.in[7];
  const auto finish = [=](const KernelArgs& k, std::int64_t row, std::int64_t m, const ProductBlock& b, const std::uint32_t* sums) {
    const std::int32_t y_zero = Bytes8::of(k, 7, zero).at(0);
    const float a_scale = k.input<float>(1)[per_row ? m : 0], y_scale = *k.input<float>(6);
    auto* y = k.output<std::uint8_t>(0) + row * columns + b.column;
    for (std::int64_t n = 0; n < b.columns; ++n) {
      const float scale = a_scale * k.input<float>(4)[per_column ? b.column + n : 0] / y_scale;
      y[n] = static_cast<std::uint8_t>(requantize(static_cast<std::int32_t>(sums[n]), scale, y_zero, is_signed));
    }
  };
  return kernel_of(c, kLinear, finish);
}

// A alone is batched, by rows or as the outermost batch dimension, and nothing else has rows of its own.
Rows quant_rows(const RowContext& c, const Places& at) {
  const auto& p = c.params<QuantMatMulParams>();
  const Shape &a = c.input_shape(at.a), &b = c.input_shape(at.b);
  if (p.row_zero_points != 1 || a.size() < 2 || b.size() > 2) return Rows::mixed();
  return rows_of_first(c);
}
Rows integer_rows(const RowContext& c) { return quant_rows(c, kInteger); }
Rows linear_rows(const RowContext& c) { return quant_rows(c, kLinear); }

}  // namespace

std::span<const OpDef> quant_matrix_ops() {
  static const OpDef ops[] = {
      {.name = "MatMulInteger", .min_inputs = 2, .max_inputs = 4, .infer = infer_integer, .cpu = integer_cpu, .data_inputs = 3, .rows = integer_rows},
      {.name = "QLinearMatMul", .min_inputs = 8, .max_inputs = 8, .infer = infer_linear, .cpu = linear_cpu, .data_inputs = 9, .rows = linear_rows},
  };
  return ops;
}

}  // namespace tandem
