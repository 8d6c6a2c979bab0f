#include "runtime/ops/matrix_product.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/cpu/gemm.h"

namespace tandem {
namespace {

constexpr std::int64_t kTaskProducts = 1 << 20;  // multiply-adds of a task, where there are as many
constexpr std::int64_t kTilesOfTask = 4;

std::int64_t blocks(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }

// Steps of a broadcast operand along the result's batch dimensions, counted in matrices.
std::vector<std::int64_t> batch_steps(const Shape& batch, const Shape& operand) {
  std::vector<std::int64_t> steps(batch.size(), 0);
  std::int64_t step = 1;
  for (std::size_t i = 0; i < operand.size(); ++i) {
    const std::size_t from = operand.size() - 1 - i, to = batch.size() - 1 - i;
    if (operand[from] != 1) steps[to] = step;
    step *= operand[from];
  }
  return steps;
}

// Rows of A for the product kernel: as they are, or copied together where their elements do not lie side by side.
const float* dense_rows(const Product& p, const float* a, std::int64_t rows, float* scratch) {
  if (p.a_k_step == 1) return a;
  for (std::int64_t k = 0; k < p.depth; ++k) {
    for (std::int64_t m = 0; m < rows; ++m) scratch[m * p.depth + k] = a[m * p.a_row_step + k * p.a_k_step];
  }
  return scratch;
}

Kernel f32_kernel(CpuContext& c, const Product& p, std::size_t a, std::size_t b, ProductEpilogue epilogue, std::optional<std::size_t> bias) {
  const std::int64_t matrix_floats = gemm_packed_floats(p.depth, p.columns), panels = gemm_panels(p.columns);
  // Panel `index`, counted over all matrices of B.
  const auto pack = [p, panels, matrix_floats](const float* from, float* to, std::int64_t index) {
    const float* matrix = from + index / panels * p.depth * p.columns;
    const std::int64_t panel = index % panels;
    gemm_pack(p.depth, p.columns, panel, panel + 1, to + index / panels * matrix_floats,
              [&](std::int64_t k, std::int64_t n) { return matrix[k * p.b_k_step + n * p.b_column_step]; });
  };
  const std::int64_t all_panels = p.b_matrices * panels;
  const auto bytes = static_cast<std::size_t>(p.b_matrices * matrix_floats) * sizeof(float);
  Kernel kernel;
  kernel.implementation = "hwy:gemm_f32";
  std::size_t packed = 0;
  const Tensor* constant = c.constant(b);
  if (constant) {
    packed = c.pack(b, fmt::format("matrix:{}:{}:{}", p.b_k_step, p.b_column_step, gemm_panel_width()), bytes,
                    [pack, all_panels, t = *constant](void* to) {
                      for (std::int64_t i = 0; i < all_panels; ++i) pack(t.as<float>().data(), static_cast<float*>(to), i);
                    });
    c.drop_operand(b);
  } else {
    kernel.shared_bytes = bytes;
    const std::int64_t per_task = std::max<std::int64_t>(1, kTaskProducts / 8 / std::max<std::int64_t>(1, gemm_panel_floats(p.depth)));
    kernel.stages.push_back({static_cast<int>(blocks(all_panels, per_task)), [=](const KernelArgs& k, int task) {
                               for (std::int64_t i = task * per_task; i < std::min(all_panels, (task + 1) * per_task); ++i) {
                                 pack(k.input<float>(b), reinterpret_cast<float*>(k.shared), i);
                               }
                             }});
  }
  const ProductCut cut(p, gemm_panel_width());
  const bool is_constant = constant != nullptr;
  kernel.stages.push_back({cut.tasks(), [=](const KernelArgs& k, int task) {
                             const ProductBlock block = cut.block(task);
                             const auto [a_matrix, b_matrix] = p.matrices(block.batch);
                             const float* x = k.input<float>(a) + a_matrix * p.rows * p.depth + block.row * p.a_row_step;
                             GemmBlock g;
                             g.rows = block.rows;
                             g.segment_depth = p.depth;
                             g.a = dense_rows(p, x, block.rows, reinterpret_cast<float*>(k.scratch));
                             g.a_stride = p.a_k_step == 1 ? p.a_row_step : p.depth;
                             g.packed = (is_constant ? static_cast<const float*>(k.packed[packed]) : reinterpret_cast<const float*>(k.shared)) +
                                        b_matrix * matrix_floats;
                             g.outputs = p.columns;
                             g.first_panel = block.column / gemm_panel_width();
                             g.last_panel = gemm_panels(block.column + block.columns);
                             g.bias = bias ? k.input<float>(*bias) : nullptr;
                             g.c = k.output<float>(0) + (block.batch * p.rows + block.row) * p.columns;
                             g.c_stride = p.columns;
                             gemm_run(g);
                             if (epilogue) epilogue(k, block);
                           }});
  if (p.a_k_step != 1) kernel.scratch_bytes = static_cast<std::size_t>(cut.rows_per_task() * p.depth) * sizeof(float);
  return kernel;
}

// Rows of sums in Sum, element type T.
template <class T, class Sum>
Kernel plain_kernel(const Product& p, std::size_t a, std::size_t b, ProductEpilogue epilogue) {
  const ProductCut cut(p, 64);
  const auto run = [=](const KernelArgs& k, int task) {
    const ProductBlock block = cut.block(task);
    const auto [a_matrix, b_matrix] = p.matrices(block.batch);
    Sum* sums = reinterpret_cast<Sum*>(k.scratch);
    for (std::int64_t m = block.row; m < block.row + block.rows; ++m) {
      const T* x = k.input<T>(a) + a_matrix * p.rows * p.depth + m * p.a_row_step;
      std::fill_n(sums, block.columns, Sum{});
      for (std::int64_t i = 0; i < p.depth; ++i) {
        const auto v = static_cast<Sum>(x[i * p.a_k_step]);
        const T* w = k.input<T>(b) + b_matrix * p.depth * p.columns + i * p.b_k_step + block.column * p.b_column_step;
        for (std::int64_t n = 0; n < block.columns; ++n) sums[n] += v * static_cast<Sum>(w[n * p.b_column_step]);
      }
      T* y = k.output<T>(0) + (block.batch * p.rows + m) * p.columns + block.column;
      for (std::int64_t n = 0; n < block.columns; ++n) y[n] = static_cast<T>(sums[n]);
    }
    if (epilogue) epilogue(k, block);
  };
  Kernel kernel = Kernel::single("plain", cut.tasks(), run);
  kernel.scratch_bytes = static_cast<std::size_t>(p.columns) * sizeof(Sum);
  return kernel;
}

}  // namespace

Product matmul_product(const Shape& a, const Shape& b, Shape* out) {
  const auto refuse = [&] { return InvalidModel(fmt::format("matrices of shapes {} and {} cannot be multiplied", to_string(a), to_string(b))); };
  if (a.empty() || b.empty()) throw refuse();
  Product p;
  p.rows = a.size() == 1 ? 1 : a[a.size() - 2];
  p.depth = a.back();
  p.columns = b.size() == 1 ? 1 : b.back();
  if (p.depth != (b.size() == 1 ? b[0] : b[b.size() - 2])) throw refuse();
  const Shape a_batch(a.begin(), a.end() - std::min<std::ptrdiff_t>(2, std::ssize(a))),
      b_batch(b.begin(), b.end() - std::min<std::ptrdiff_t>(2, std::ssize(b)));
  Shape batch;
  try {
    batch = broadcast(a_batch, b_batch);
  } catch (const InvalidModel&) {
    throw refuse();
  }
  *out = batch;
  if (a.size() > 1) out->push_back(p.rows);
  if (b.size() > 1) out->push_back(p.columns);
  elements(*out);
  p.a_row_step = p.depth;
  p.b_k_step = p.columns;
  p.b_matrices = elements(b_batch);
  if (p.b_matrices == 1 && a.size() > 1) {  // one matrix for all: the batches of A are further rows
    p.rows = elements(std::span(a).first(a.size() - 1));
    return p;
  }
  p.batch = batch;
  p.a_steps = batch_steps(batch, a_batch);
  p.b_steps = batch_steps(batch, b_batch);
  return p;
}

std::pair<std::int64_t, std::int64_t> Product::matrices(std::int64_t index) const {
  std::pair<std::int64_t, std::int64_t> of{0, 0};
  for (std::size_t d = batch.size(); d-- > 0; index /= batch[d]) {
    of.first += index % batch[d] * a_steps[d];
    of.second += index % batch[d] * b_steps[d];
  }
  return of;
}

ProductCut::ProductCut(const Product& p, std::int64_t unit) : batches_(elements(p.batch)), rows_(p.rows), columns_(p.columns) {
  if (rows_ == 0 || columns_ == 0) {
    batches_ = 0;
    return;
  }
  rows_per_task_ = std::min(rows_, kTilesOfTask * gemm_tile_rows());
  const double each = static_cast<double>(rows_per_task_) * static_cast<double>(std::max<std::int64_t>(1, p.depth)) * static_cast<double>(unit);
  const auto units = std::clamp<std::int64_t>(static_cast<std::int64_t>(kTaskProducts / each), 1, blocks(columns_, unit));
  columns_per_task_ = units * unit;
  column_blocks_ = blocks(columns_, columns_per_task_);
  if (column_blocks_ == 1) {  // thin products: more rows for a task
    const double row = static_cast<double>(std::max<std::int64_t>(1, p.depth)) * static_cast<double>(columns_);
    const std::int64_t tiles = static_cast<std::int64_t>(kTaskProducts / row) / gemm_tile_rows();
    rows_per_task_ = std::min(rows_, std::max(rows_per_task_, tiles * gemm_tile_rows()));
  }
  row_blocks_ = blocks(rows_, rows_per_task_);
}

ProductBlock ProductCut::block(int task) const {
  ProductBlock b;
  b.column = task % column_blocks_ * columns_per_task_;
  b.columns = std::min(columns_per_task_, columns_ - b.column);
  b.row = task / column_blocks_ % row_blocks_ * rows_per_task_;
  b.rows = std::min(rows_per_task_, rows_ - b.row);
  b.batch = task / (column_blocks_ * row_blocks_);
  return b;
}

Kernel product_kernel(CpuContext& c, const Product& p, std::size_t a, std::size_t b, ProductEpilogue epilogue, std::optional<std::size_t> bias) {
  switch (c.in[a].dtype) {
    case DType::kF32:
      return f32_kernel(c, p, a, b, std::move(epilogue), bias);
    case DType::kBF16:
      return plain_kernel<BFloat16, float>(p, a, b, std::move(epilogue));
    case DType::kF64:
      return plain_kernel<double, double>(p, a, b, std::move(epilogue));
    case DType::kI32:
    case DType::kU32:  // two's complement: the sign does not matter
      return plain_kernel<std::uint32_t, std::uint32_t>(p, a, b, std::move(epilogue));
    default:
      return plain_kernel<std::uint64_t, std::uint64_t>(p, a, b, std::move(epilogue));
  }
}

}  // namespace tandem
