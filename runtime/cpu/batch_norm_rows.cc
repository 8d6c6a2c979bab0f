#include "runtime/cpu/batch_norm_rows.h"

#include <algorithm>

#include "runtime/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/batch_norm_rows.cc"
#include <hwy/foreach_target.h>  // first: compiles this file once for each instruction set

#include <hwy/highway.h>

#include "runtime/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kStrip = 512;  // channels whose sums stay in the first cache while rows pass

// Op::step<kRows>(tag, row, channel) treats a vector of channels of kRows neighbouring rows.
template <int kRows, class Op>
HWY_INLINE void line(const Op& op, std::int64_t row, std::int64_t begin, std::int64_t end) {
  const D full;
  const hn::CappedTag<float, 4> four;
  const hn::CappedTag<float, 1> one;
  std::int64_t c = begin;
  for (; c + kLanes <= end; c += kLanes) op.template step<kRows>(full, row, c);
  const auto few = static_cast<std::int64_t>(hn::Lanes(four));
  for (; c + few <= end; c += few) op.template step<kRows>(four, row, c);
  for (; c < end; ++c) op.template step<kRows>(one, row, c);
}

template <class Op>
HWY_INLINE void walk(const Op& op, std::int64_t rows, std::int64_t channels) {
  for (std::int64_t begin = 0; begin < channels; begin += kStrip) {
    const std::int64_t end = std::min(channels, begin + kStrip);
    std::int64_t r = 0;
    for (; r + 4 <= rows; r += 4) line<4>(op, r, begin, end);
    for (; r < rows; ++r) line<1>(op, r, begin, end);
  }
}

template <class T>
struct Moments {
  RowsOf<const T> x;
  const float* centre;
  float *sum, *squares;

  template <int kRows, class Tag>
  HWY_INLINE void step(Tag d, std::int64_t row, std::int64_t c) const {
    const auto k = hn::LoadU(d, centre + c);
    const T* p = x.data + row * x.pitch + c;
    const auto d0 = hn::Sub(load(d, p), k);
    auto s = d0, q = hn::Mul(d0, d0);
    if constexpr (kRows == 4) {
      const auto d1 = hn::Sub(load(d, p + x.pitch), k), d2 = hn::Sub(load(d, p + 2 * x.pitch), k), d3 = hn::Sub(load(d, p + 3 * x.pitch), k);
      s = hn::Add(hn::Add(d0, d1), hn::Add(d2, d3));
      q = hn::Add(hn::MulAdd(d1, d1, q), hn::MulAdd(d3, d3, hn::Mul(d2, d2)));
    }
    hn::StoreU(hn::Add(hn::LoadU(d, sum + c), s), d, sum + c);
    hn::StoreU(hn::Add(hn::LoadU(d, squares + c), q), d, squares + c);
  }
};

template <class Tag>
struct Factors {
  hn::Vec<Tag> mean, scale, shift;
  HWY_INLINE Factors(Tag d, const ChannelNorm& n, std::int64_t c)
      : mean(hn::LoadU(d, n.mean + c)), scale(hn::LoadU(d, n.scale + c)), shift(hn::LoadU(d, n.shift + c)) {}
  // Of the centred x.
  HWY_INLINE hn::Vec<Tag> normalised(hn::Vec<Tag> centred) const { return hn::MulAdd(centred, scale, shift); }
  template <bool kRelu>
  HWY_INLINE hn::Vec<Tag> passed(Tag d, hn::Vec<Tag> dy, hn::Vec<Tag> centred) const {
    if constexpr (kRelu) return hn::IfThenElseZero(hn::Gt(normalised(centred), hn::Zero(d)), dy);
    return dy;
  }
};

template <class T, bool kRelu>
struct Normalise {
  const ChannelNorm& norm;
  RowsOf<const T> x;
  RowsOf<T> y;

  template <int kRows, class Tag>
  HWY_INLINE void step(Tag d, std::int64_t row, std::int64_t c) const {
    const Factors<Tag> f(d, norm, c);
    for (int i = 0; i < kRows; ++i) {
      auto v = f.normalised(hn::Sub(load(d, x.data + (row + i) * x.pitch + c), f.mean));
      if constexpr (kRelu) v = hn::IfThenZeroElse(hn::Lt(v, hn::Zero(d)), v);  // NaN stays
      store(d, v, y.data + (row + i) * y.pitch + c);
    }
  }
};

template <class T, bool kRelu>
struct GradientSums {
  const ChannelNorm& norm;
  RowsOf<const T> dy, x;
  float *sum, *product;

  template <int kRows, class Tag>
  HWY_INLINE void step(Tag d, std::int64_t row, std::int64_t c) const {
    const Factors<Tag> f(d, norm, c);
    const T *px = x.data + row * x.pitch + c, *pdy = dy.data + row * dy.pitch + c;
    const auto x0 = hn::Sub(load(d, px), f.mean);
    const auto g0 = f.template passed<kRelu>(d, load(d, pdy), x0);
    auto s = g0, q = hn::Mul(g0, x0);
    if constexpr (kRows == 4) {
      const auto x1 = hn::Sub(load(d, px + x.pitch), f.mean), x2 = hn::Sub(load(d, px + 2 * x.pitch), f.mean),
                 x3 = hn::Sub(load(d, px + 3 * x.pitch), f.mean);
      const auto g1 = f.template passed<kRelu>(d, load(d, pdy + dy.pitch), x1), g2 = f.template passed<kRelu>(d, load(d, pdy + 2 * dy.pitch), x2),
                 g3 = f.template passed<kRelu>(d, load(d, pdy + 3 * dy.pitch), x3);
      s = hn::Add(hn::Add(g0, g1), hn::Add(g2, g3));
      q = hn::Add(hn::MulAdd(g1, x1, q), hn::MulAdd(g3, x3, hn::Mul(g2, x2)));
    }
    hn::StoreU(hn::Add(hn::LoadU(d, sum + c), s), d, sum + c);
    hn::StoreU(hn::Add(hn::LoadU(d, product + c), q), d, product + c);
  }
};

template <class T, bool kRelu>
struct GradientRows {
  const ChannelNorm& norm;
  const NormGradient& gradient;
  RowsOf<const T> dy, x;
  RowsOf<T> dx;

  template <int kRows, class Tag>
  HWY_INLINE void step(Tag d, std::int64_t row, std::int64_t c) const {
    const Factors<Tag> f(d, norm, c);
    const auto offset = hn::LoadU(d, gradient.offset + c), slope = hn::LoadU(d, gradient.slope + c);
    for (int i = 0; i < kRows; ++i) {
      const auto centred = hn::Sub(load(d, x.data + (row + i) * x.pitch + c), f.mean);
      const auto g = f.template passed<kRelu>(d, load(d, dy.data + (row + i) * dy.pitch + c), centred);
      store(d, hn::NegMulAdd(slope, centred, hn::MulSub(f.scale, g, offset)), dx.data + (row + i) * dx.pitch + c);
    }
  }
};

template <class T>
void moments_typed(RowsOf<const T> x, std::int64_t rows, std::int64_t channels, const float* centre, float* sum, float* squares) {
  walk(Moments<T>{x, centre, sum, squares}, rows, channels);
}

template <class T>
void normalise_typed(const ChannelNorm& n, RowsOf<const T> x, RowsOf<T> y, std::int64_t rows) {
  if (n.relu)
    walk(Normalise<T, true>{n, x, y}, rows, n.channels);
  else
    walk(Normalise<T, false>{n, x, y}, rows, n.channels);
}

template <class T>
void sums_typed(const ChannelNorm& n, RowsOf<const T> dy, RowsOf<const T> x, std::int64_t rows, float* sum, float* product) {
  if (n.relu)
    walk(GradientSums<T, true>{n, dy, x, sum, product}, rows, n.channels);
  else
    walk(GradientSums<T, false>{n, dy, x, sum, product}, rows, n.channels);
}

template <class T>
void rows_typed(const ChannelNorm& n, const NormGradient& g, RowsOf<const T> dy, RowsOf<const T> x, RowsOf<T> dx, std::int64_t rows) {
  if (n.relu)
    walk(GradientRows<T, true>{n, g, dy, x, dx}, rows, n.channels);
  else
    walk(GradientRows<T, false>{n, g, dy, x, dx}, rows, n.channels);
}

void moments_f32(RowsOf<const float> x, std::int64_t rows, std::int64_t channels, const float* centre, float* sum, float* squares) {
  moments_typed(x, rows, channels, centre, sum, squares);
}
void moments_bf16(RowsOf<const BFloat16> x, std::int64_t rows, std::int64_t channels, const float* centre, float* sum, float* squares) {
  moments_typed(x, rows, channels, centre, sum, squares);
}
void normalise_f32(const ChannelNorm& n, RowsOf<const float> x, RowsOf<float> y, std::int64_t rows) { normalise_typed(n, x, y, rows); }
void normalise_bf16(const ChannelNorm& n, RowsOf<const BFloat16> x, RowsOf<BFloat16> y, std::int64_t rows) { normalise_typed(n, x, y, rows); }
void sums_f32(const ChannelNorm& n, RowsOf<const float> dy, RowsOf<const float> x, std::int64_t rows, float* sum, float* product) {
  sums_typed(n, dy, x, rows, sum, product);
}
void sums_bf16(const ChannelNorm& n, RowsOf<const BFloat16> dy, RowsOf<const BFloat16> x, std::int64_t rows, float* sum, float* product) {
  sums_typed(n, dy, x, rows, sum, product);
}
void rows_f32(const ChannelNorm& n, const NormGradient& g, RowsOf<const float> dy, RowsOf<const float> x, RowsOf<float> dx, std::int64_t rows) {
  rows_typed(n, g, dy, x, dx, rows);
}
void rows_bf16(const ChannelNorm& n, const NormGradient& g, RowsOf<const BFloat16> dy, RowsOf<const BFloat16> x, RowsOf<BFloat16> dx,
               std::int64_t rows) {
  rows_typed(n, g, dy, x, dx, rows);
}

}  // namespace
}  // namespace tandem::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem {
HWY_EXPORT(moments_f32);
HWY_EXPORT(moments_bf16);
HWY_EXPORT(normalise_f32);
HWY_EXPORT(normalise_bf16);
HWY_EXPORT(sums_f32);
HWY_EXPORT(sums_bf16);
HWY_EXPORT(rows_f32);
HWY_EXPORT(rows_bf16);

void moment_rows(RowsOf<const float> x, std::int64_t rows, std::int64_t channels, const float* centre, float* sum, float* squares) {
  HWY_DYNAMIC_DISPATCH(moments_f32)(x, rows, channels, centre, sum, squares);
}
void moment_rows(RowsOf<const BFloat16> x, std::int64_t rows, std::int64_t channels, const float* centre, float* sum, float* squares) {
  HWY_DYNAMIC_DISPATCH(moments_bf16)(x, rows, channels, centre, sum, squares);
}
void normalise_rows(const ChannelNorm& n, RowsOf<const float> x, RowsOf<float> y, std::int64_t rows) {
  HWY_DYNAMIC_DISPATCH(normalise_f32)(n, x, y, rows);
}
void normalise_rows(const ChannelNorm& n, RowsOf<const BFloat16> x, RowsOf<BFloat16> y, std::int64_t rows) {
  HWY_DYNAMIC_DISPATCH(normalise_bf16)(n, x, y, rows);
}
void norm_gradient_sums(const ChannelNorm& n, RowsOf<const float> dy, RowsOf<const float> x, std::int64_t rows, float* sum, float* product) {
  HWY_DYNAMIC_DISPATCH(sums_f32)(n, dy, x, rows, sum, product);
}
void norm_gradient_sums(const ChannelNorm& n, RowsOf<const BFloat16> dy, RowsOf<const BFloat16> x, std::int64_t rows, float* sum, float* product) {
  HWY_DYNAMIC_DISPATCH(sums_bf16)(n, dy, x, rows, sum, product);
}
void norm_gradient_rows(const ChannelNorm& n, const NormGradient& g, RowsOf<const float> dy, RowsOf<const float> x, RowsOf<float> dx,
                        std::int64_t rows) {
  HWY_DYNAMIC_DISPATCH(rows_f32)(n, g, dy, x, dx, rows);
}
void norm_gradient_rows(const ChannelNorm& n, const NormGradient& g, RowsOf<const BFloat16> dy, RowsOf<const BFloat16> x, RowsOf<BFloat16> dx,
                        std::int64_t rows) {
  HWY_DYNAMIC_DISPATCH(rows_bf16)(n, g, dy, x, dx, rows);
}

}  // namespace tandem
#endif
