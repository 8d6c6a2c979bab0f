// Batched matrix products of the families Gemm, MatMul and their quantised forms: one description, one cut into tasks.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "runtime/ops/op.h"

namespace tandem {

// out[b][m][n] = sum over k of A[b][m][k] * B[b][k][n]. Steps in elements; out is dense.
struct Product {
  std::int64_t rows = 0, columns = 0, depth = 0;
  std::int64_t a_row_step = 0, a_k_step = 1, b_k_step = 0, b_column_step = 1;
  Shape batch;                                 // of out; empty for a single matrix
  std::vector<std::int64_t> a_steps, b_steps;  // along each of batch's dimensions, in matrices; 0 where the operand is repeated
  std::int64_t b_matrices = 1;                 // different matrices in B, dense one after the other

  // Which matrix of A and of B belongs to matrix `index` of out.
  std::pair<std::int64_t, std::int64_t> matrices(std::int64_t index) const;
};

// The product of two operands by MatMul's rules (numpy: 1-D operands are a row or a column, leading dimensions broadcast) and the result's
// shape. Throws InvalidModel naming both shapes.
Product matmul_product(const Shape& a, const Shape& b, Shape* out);

// A block of the result: rows [row, row + rows) and columns [column, column + columns) of one batch.
struct ProductBlock {
  std::int64_t batch = 0, row = 0, rows = 0, column = 0, columns = 0;
};

// Cuts a product by batch, rows and columns, from its sizes alone. Column blocks are multiples of `column_unit`, row blocks of `tile_rows`.
class ProductCut {
 public:
  static constexpr std::int64_t kRowUnit = 6;
  ProductCut(const Product&, std::int64_t column_unit, std::int64_t tile_rows = kRowUnit);
  int tasks() const { return static_cast<int>(batches_ * row_blocks_ * column_blocks_); }
  ProductBlock block(int task) const;
  std::int64_t rows_per_task() const { return rows_per_task_; }        // at most
  std::int64_t columns_per_task() const { return columns_per_task_; }  // at most

 private:
  std::int64_t batches_ = 0, rows_ = 0, columns_ = 0;
  std::int64_t rows_per_task_ = 1, columns_per_task_ = 1, row_blocks_ = 0, column_blocks_ = 0;
};

// Type of a product's sums: f32 for bf16, else the operands' own.
inline DType sum_type(DType operand) { return operand == DType::kBF16 ? DType::kF32 : operand; }

// What follows the product, in place on one block of sums whose rows lie `stride` elements of sum_type() apart; null for nothing.
using ProductEpilogue = std::function<void(const KernelArgs&, const ProductBlock&, void* sums, std::int64_t stride)>;

// A kernel for the product of operands `a` and `b` into output 0, of type f32, bf16, f64 or a 32 or 64 bit integer (which wrap around).
// f32 and bf16 (any mixture of them): sums in f32 on the product kernels of the precision; under bf16 both factors are rounded to bf16.
// Panels of B are packed once when B is constant, else in a first stage of each run; `bias` names a float32 operand with one number for each
// column to begin the sums with.
Kernel product_kernel(CpuContext&, const Product&, std::size_t a, std::size_t b, ProductEpilogue epilogue, std::optional<std::size_t> bias = {});

}  // namespace tandem
