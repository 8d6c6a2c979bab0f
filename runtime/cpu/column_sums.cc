#include "runtime/cpu/column_sums.h"

#include "runtime/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/column_sums.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Wide = hn::ScalableTag<double>;

// kRows rows at a time, so that a sum is loaded and stored once for all of them.
template <int kRows>
HWY_INLINE void add_some(const float* x, std::int64_t row_step, std::int64_t n, double* sum) {
  const Wide d;
  const hn::Rebind<float, Wide> narrow;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    auto s = hn::LoadU(d, sum + j);
    for (int r = 0; r < kRows; ++r) s = hn::Add(s, hn::PromoteTo(d, hn::LoadU(narrow, x + r * row_step + j)));
    hn::StoreU(s, d, sum + j);
  }
  for (; j < n; ++j) {
    for (int r = 0; r < kRows; ++r) sum[j] += static_cast<double>(x[r * row_step + j]);
  }
}

void add_rows(const float* x, std::int64_t row_step, std::int64_t rows, std::int64_t n, double* sum) {
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) add_some<4>(x + r * row_step, row_step, n, sum);
  for (; r < rows; ++r) add_some<1>(x + r * row_step, row_step, n, sum);
}

}  // namespace
}  // namespace tandem::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem {
namespace {

HWY_EXPORT(add_rows);

}  // namespace

void add_rows_f64(const float* x, std::int64_t row_step, std::int64_t rows, std::int64_t n, double* sum) {
  HWY_DYNAMIC_DISPATCH(add_rows)(x, row_step, rows, n, sum);
}

}  // namespace tandem
#endif  // HWY_ONCE
