#include "runtime/ops/product_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem {
namespace {

std::int64_t whole(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// Rows of f32 as A on tiles: bf16 parts, zero past the depth and in the rows that fill up the last tile.
void convert_rows(const ProductPlan& p, const GemmBlock& g, BFloat16* a) {
  const std::int64_t width = amx_lines(p.depth) * kAmxLine;
  for (std::int64_t r = 0; r < whole(g.rows, 16); ++r) {
    BFloat16* to = a + r * p.stride;
    const std::int64_t count = r < g.rows ? p.depth : 0;
    if (count && p.parts == 1) narrow_row(g.a + r * g.a_stride, to, count);
    if (count && p.parts == 3) split_row(g.a + r * g.a_stride, to, p.part_stride, count);
    for (int part = 0; part < p.parts; ++part) std::fill(to + part * p.part_stride + count, to + part * p.part_stride + width, BFloat16());
  }
}

}  // namespace

ProductPlan ProductPlan::make(const CpuContext& c, DType type, std::int64_t depth, std::int64_t rows) {
  ProductPlan p;
  p.depth = depth;
  p.rounded = type == DType::kBF16;
  const bool three = type == DType::kF32 && c.precision == Precision::kBF16x3;
  if (!p.rounded && !three) return p;
  p.amx = choose_amx(c.cpu);
  p.parts = three ? 3 : 1;
  const std::int64_t lines = amx_lines(depth);
  p.stride = (lines + (lines % 16 == 0 ? 1 : 0)) * kAmxLine;  // rows a power of two apart would share cache sets
  p.part_stride = p.stride * whole(rows, kAmxRows);
  return p;
}

std::size_t ProductPlan::packed_bytes(std::int64_t outputs) const {
  if (amx) return static_cast<std::size_t>(amx_panels(outputs) * amx_panel_elements(depth, parts)) * sizeof(BFloat16);
  return static_cast<std::size_t>(gemm_packed_floats(depth, outputs)) * sizeof(float);
}

std::string ProductPlan::key() const { return amx ? fmt::format("amx{}", parts) : fmt::format("gemm{}:r{}", gemm_panel_width(), rounded); }

std::string ProductPlan::name() const {
  if (amx) return parts == 3 ? "amx:bf16x3" : "amx:bf16";
  return rounded ? "hwy:bf16_by_f32" : "hwy:f32";
}

void ProductPlan::run(GemmBlock g, const void* packed, std::byte* scratch) const {
  if (!amx) {
    g.packed = static_cast<const float*>(packed);
    return gemm_run(g);
  }
  BFloat16* a = reinterpret_cast<BFloat16*>(scratch);
  convert_rows(*this, g, a);
  AmxBlock b;
  b.rows = g.rows;
  b.lines = amx_lines(depth);
  b.parts = parts;
  b.a = a;
  b.a_stride = stride;
  b.part_stride = part_stride;
  b.packed = static_cast<const BFloat16*>(packed);
  b.outputs = g.outputs;
  b.first_panel = g.first_panel;
  b.last_panel = g.last_panel;
  b.bias = g.bias;
  b.exit = {
      .type = g.type, .residual = g.residual, .residual_stride = g.residual_stride, .c = g.c, .c_stride = g.c_stride, .activation = g.activation};
  amx(b);
}

}  // namespace tandem
