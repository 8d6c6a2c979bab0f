#include "runtime/cpu/product_rows.h"

#include <algorithm>
#include <cstring>

#ifdef TANDEM_ONE_HIGHWAY_TARGET
#define HWY_COMPILE_ONLY_STATIC
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/product_rows.cc"
#include <hwy/foreach_target.h>  // compiles this file once for each instruction set
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Accumulators that fit the register file: M rows by kVectors vectors.
constexpr std::size_t kRows = 6;
constexpr std::size_t kVectors = HWY_MAX_BYTES >= 64 ? 4 : 2;

struct Walk {
  const float* a;
  std::ptrdiff_t row_step, k_step;
  std::size_t depth;
  const float* panel;
};

// M rows of `out` for kVectors * lanes columns from `column` on; out rows are kProductPanel apart.
template <std::size_t M, class D>
void tile(D d, const Walk& w, std::size_t column, float* out) {
  const std::size_t n = hn::Lanes(d);
  hn::Vec<D> sum[M][kVectors];
  for (std::size_t m = 0; m < M; ++m) {
    for (std::size_t v = 0; v < kVectors; ++v) sum[m][v] = hn::Zero(d);
  }
  const float* b = w.panel + column;
  const float* a = w.a;
  for (std::size_t k = 0; k < w.depth; ++k, b += kProductPanel, a += w.k_step) {
    hn::Vec<D> row[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) row[v] = hn::LoadU(d, b + v * n);
    for (std::size_t m = 0; m < M; ++m) {
      const auto x = hn::Set(d, a[static_cast<std::ptrdiff_t>(m) * w.row_step]);
      for (std::size_t v = 0; v < kVectors; ++v) sum[m][v] = hn::MulAdd(x, row[v], sum[m][v]);
    }
  }
  for (std::size_t m = 0; m < M; ++m) {
    for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(sum[m][v], d, out + m * kProductPanel + column + v * n);
  }
}

template <std::size_t M>
void panel_rows(const Walk& w, std::size_t columns, float* out) {
  const hn::CappedTag<float, kProductPanel / 4> d;
  const std::size_t step = kVectors * hn::Lanes(d);
  for (std::size_t c = 0; c < columns; c += step) tile<M>(d, w, c, out);
}

void product(const float* a, std::ptrdiff_t row_step, std::ptrdiff_t k_step, std::size_t rows, std::size_t depth, const float* panel,
             std::size_t columns, float* out, std::ptrdiff_t out_step) {
  using Panel = void (*)(const Walk&, std::size_t, float*);
  constexpr Panel kByRows[] = {panel_rows<1>, panel_rows<2>, panel_rows<3>, panel_rows<4>, panel_rows<5>, panel_rows<6>};
  alignas(64) float block[kRows * kProductPanel];
  for (std::size_t m = 0; m < rows; m += kRows) {
    const std::size_t count = std::min(kRows, rows - m);
    kByRows[count - 1]({a + static_cast<std::ptrdiff_t>(m) * row_step, row_step, k_step, depth, panel}, columns, block);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(out + static_cast<std::ptrdiff_t>(m + i) * out_step, block + i * kProductPanel, columns * sizeof(float));
    }
  }
}

}  // namespace tandem::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem {
HWY_EXPORT(product);

void pack_product_panel(const float* b, std::ptrdiff_t k_step, std::ptrdiff_t n_step, std::size_t depth, std::size_t columns, float* panel) {
  for (std::size_t k = 0; k < depth; ++k, b += k_step, panel += kProductPanel) {
    for (std::size_t n = 0; n < columns; ++n) panel[n] = b[static_cast<std::ptrdiff_t>(n) * n_step];
    std::fill(panel + columns, panel + kProductPanel, 0.0f);
  }
}

void product_rows(const float* a, std::ptrdiff_t row_step, std::ptrdiff_t k_step, std::size_t rows, std::size_t depth, const float* panel,
                  std::size_t columns, float* out, std::ptrdiff_t out_step) {
  HWY_DYNAMIC_DISPATCH(product)(a, row_step, k_step, rows, depth, panel, columns, out, out_step);
}

}  // namespace tandem
#endif
