#include "runtime/ops/matrix_product.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/cpu/activation_rows.h"
#include "runtime/ops/packed_operand.h"
#include "runtime/ops/product_plan.h"

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

// A product with sums in f32.
struct FloatJob {
  Product p;
  ProductPlan plan;
  ProductCut cut;
  DType a_type, b_type, y_type;
  std::size_t a;
  std::optional<std::size_t> bias;
  ProductEpilogue epilogue;
  PackedOperand weights = {};
  std::size_t matrix_bytes = 0;                                                                              // of one packed matrix
  std::size_t tiles_at = 0, sums_at = 0;                                                                     // in scratch, behind gathered rows of A
  bool in_place() const { return a_type == DType::kF32 && p.a_k_step == 1 && (!plan.rounded || plan.amx); }  // tiles round by themselves
  bool own_sums() const { return y_type != DType::kF32 && epilogue; }
  std::int64_t all_panels() const { return p.b_matrices * plan.panels(p.columns); }
};

// Panels [first, last), counted over all matrices of B.
template <class T>
void pack_b(const FloatJob& j, const T* b, std::int64_t first, std::int64_t last, std::byte* to) {
  const std::int64_t panels = j.plan.panels(j.p.columns);
  for (std::int64_t i = first; i < last; ++i) {
    const T* matrix = b + i / panels * j.p.depth * j.p.columns;
    j.plan.pack_panels(j.p.columns, i % panels, i % panels + 1, to + static_cast<std::size_t>(i / panels) * j.matrix_bytes,
                       [&](std::int64_t k, std::int64_t n) { return static_cast<float>(matrix[k * j.p.b_k_step + n * j.p.b_column_step]); });
  }
}
void pack_b(const FloatJob& j, const void* b, std::int64_t first, std::int64_t last, std::byte* to) {
  if (j.b_type == DType::kBF16) return pack_b(j, static_cast<const BFloat16*>(b), first, last, to);
  pack_b(j, static_cast<const float*>(b), first, last, to);
}

template <class T>
void gather_rows(const FloatJob& j, const T* a, std::int64_t rows, float* to) {
  const bool rounds = j.plan.rounded && std::is_same_v<T, float>;
  for (std::int64_t m = 0; m < rows; ++m, a += j.p.a_row_step, to += j.p.depth) {
    if constexpr (std::is_same_v<T, BFloat16>) {
      if (j.p.a_k_step == 1) {
        widen_row(a, to, j.p.depth, false);
        continue;
      }
    }
    for (std::int64_t k = 0; k < j.p.depth; ++k) {
      const auto v = static_cast<float>(a[k * j.p.a_k_step]);
      to[k] = rounds ? static_cast<float>(BFloat16(v)) : v;
    }
  }
}

void run_block(const FloatJob& j, const KernelArgs& k, int task) {
  const Product& p = j.p;
  const ProductBlock block = j.cut.block(task);
  const auto [a_matrix, b_matrix] = p.matrices(block.batch);
  const std::int64_t a_first = a_matrix * p.rows * p.depth + block.row * p.a_row_step;
  float* rows = reinterpret_cast<float*>(k.scratch);
  GemmBlock g;
  g.rows = block.rows;
  g.segment_depth = p.depth;
  g.a = j.in_place() ? k.input<float>(j.a) + a_first : rows;
  g.a_stride = j.in_place() ? p.a_row_step : p.depth;
  if (!j.in_place() && j.a_type == DType::kBF16) gather_rows(j, k.input<BFloat16>(j.a) + a_first, block.rows, rows);
  if (!j.in_place() && j.a_type == DType::kF32) gather_rows(j, k.input<float>(j.a) + a_first, block.rows, rows);
  g.outputs = p.columns;
  g.first_panel = block.column / j.plan.panel_width();
  g.last_panel = j.plan.panels(block.column + block.columns);
  g.bias = j.bias ? k.input<float>(*j.bias) : nullptr;
  const std::int64_t at = (block.batch * p.rows + block.row) * p.columns, columns = j.own_sums() ? block.columns : p.columns;
  float* sums = reinterpret_cast<float*>(k.scratch + j.sums_at);
  g.type = j.own_sums() ? DType::kF32 : j.y_type;
  g.c_stride = columns;
  // The kernel counts columns from the first of the row.
  if (j.own_sums())
    g.c = sums - block.column;
  else
    g.c = static_cast<std::byte*>(k.out[0]) + static_cast<std::size_t>(at) * size_of(j.y_type);
  j.plan.run(g, j.weights.data(k) + static_cast<std::size_t>(b_matrix) * j.matrix_bytes, k.scratch + j.tiles_at);
  if (!j.epilogue) return;
  if (!j.own_sums()) return j.epilogue(k, block, k.output<float>(0) + at + block.column, p.columns);
  j.epilogue(k, block, sums, columns);
  for (std::int64_t m = 0; m < block.rows; ++m)
    narrow_row(sums + m * columns, k.output<BFloat16>(0) + at + m * p.columns + block.column, block.columns);
}

Kernel float_kernel(CpuContext& c, const Product& p, std::size_t a, std::size_t b, ProductEpilogue epilogue, std::optional<std::size_t> bias) {
  const DType a_type = c.in[a].dtype;
  const bool half = c.precision == Precision::kBF16 || a_type == DType::kBF16;
  ProductPlan plan = ProductPlan::make(c, half ? DType::kBF16 : DType::kF32, p.depth, 0);
  const ProductCut cut(p, plan.panel_width(), plan.tile_rows());
  plan = ProductPlan::make(c, half ? DType::kBF16 : DType::kF32, p.depth, cut.rows_per_task());
  FloatJob j{p, plan, cut, a_type, c.in[b].dtype, c.out[0].dtype, a, bias, std::move(epilogue)};
  j.matrix_bytes = plan.packed_bytes(p.columns);
  Kernel kernel;
  kernel.implementation = plan.name() + ":matrix";
  const std::int64_t per_part = std::max<std::int64_t>(1, kTaskProducts / 8 / std::max<std::int64_t>(1, p.depth * plan.panel_width()));
  j.weights = PackedOperand(c, kernel, b, fmt::format("matrix:{}:{}:{}", p.b_k_step, p.b_column_step, plan.key()),
                            static_cast<std::size_t>(p.b_matrices) * j.matrix_bytes, blocks(j.all_panels(), per_part),
                            [j, per_part](const void* values, std::int64_t part, std::byte* to) {
                              pack_b(j, values, part * per_part, std::min(j.all_panels(), (part + 1) * per_part), to);
                            });
  j.tiles_at = whole_lines(j.in_place() ? 0 : cut.rows_per_task() * p.depth * 4);
  j.sums_at = j.tiles_at + whole_lines(static_cast<std::int64_t>(plan.scratch_bytes()));
  kernel.scratch_bytes = j.sums_at + (j.own_sums() ? whole_lines(cut.rows_per_task() * std::min(p.columns, cut.columns_per_task()) * 4) : 0);
  kernel.stages.push_back({cut.tasks(), [j](const KernelArgs& k, int task) { run_block(j, k, task); }});
  return kernel;
}

// Sums in the operands' own type.
template <class T>
Kernel plain_kernel(const Product& p, std::size_t a, std::size_t b, ProductEpilogue epilogue) {
  const ProductCut cut(p, 64);
  const auto run = [=](const KernelArgs& k, int task) {
    const ProductBlock block = cut.block(task);
    const auto [a_matrix, b_matrix] = p.matrices(block.batch);
    T* const y = k.output<T>(0) + (block.batch * p.rows + block.row) * p.columns + block.column;
    for (std::int64_t m = 0; m < block.rows; ++m) {
      const T* x = k.input<T>(a) + a_matrix * p.rows * p.depth + (block.row + m) * p.a_row_step;
      T* sums = y + m * p.columns;
      std::fill_n(sums, block.columns, T{});
      for (std::int64_t i = 0; i < p.depth; ++i) {
        const T v = x[i * p.a_k_step];
        const T* w = k.input<T>(b) + b_matrix * p.depth * p.columns + i * p.b_k_step + block.column * p.b_column_step;
        for (std::int64_t n = 0; n < block.columns; ++n) sums[n] += v * w[n * p.b_column_step];
      }
    }
    if (epilogue) epilogue(k, block, y, p.columns);
  };
  return Kernel::single("plain", cut.tasks(), run);
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

ProductCut::ProductCut(const Product& p, std::int64_t unit, std::int64_t tile_rows)
    : batches_(elements(p.batch)), rows_(p.rows), columns_(p.columns) {
  if (rows_ == 0 || columns_ == 0) {
    batches_ = 0;
    return;
  }
  rows_per_task_ = std::min(rows_, kTilesOfTask * tile_rows);
  const double each = static_cast<double>(rows_per_task_) * static_cast<double>(std::max<std::int64_t>(1, p.depth)) * static_cast<double>(unit);
  const auto units = std::clamp<std::int64_t>(static_cast<std::int64_t>(kTaskProducts / each), 1, blocks(columns_, unit));
  columns_per_task_ = units * unit;
  column_blocks_ = blocks(columns_, columns_per_task_);
  if (column_blocks_ == 1) {  // thin products: more rows for a task
    const double row = static_cast<double>(std::max<std::int64_t>(1, p.depth)) * static_cast<double>(columns_);
    const std::int64_t tiles = static_cast<std::int64_t>(kTaskProducts / row) / tile_rows;
    rows_per_task_ = std::min(rows_, std::max(rows_per_task_, tiles * tile_rows));
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
    case DType::kBF16:
      return float_kernel(c, p, a, b, std::move(epilogue), bias);
    case DType::kF64:
      return plain_kernel<double>(p, a, b, std::move(epilogue));
    case DType::kI32:
    case DType::kU32:  // two's complement: the sign does not matter
      return plain_kernel<std::uint32_t>(p, a, b, std::move(epilogue));
    default:
      return plain_kernel<std::uint64_t>(p, a, b, std::move(epilogue));
  }
}

}  // namespace tandem
