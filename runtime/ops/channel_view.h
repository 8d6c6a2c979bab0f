// Tensors seen as [batch, channels, everything else], for kernels that go channel by channel or by rows of channels.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>

#include "runtime/cpu/batch_norm_rows.h"
#include "runtime/ops/op.h"

namespace tandem {

// A tensor as [n, c, s]: batch, channels, everything else. Of rank 1: one channel.
struct ChannelView {
  DType dtype = DType::kNone;
  std::int64_t n = 0, c = 1, s = 1;
  std::int64_t n_step = 0, c_step = 1, s_step = 1;  // in elements
  ChannelView() = default;
  explicit ChannelView(const TensorDesc&);
  std::int64_t at(std::int64_t in, std::int64_t ic, std::int64_t is) const { return in * n_step + ic * c_step + is * s_step; }
  std::int64_t rows() const { return n * s; }
  // Channels are neighbours and rows equally far apart.
  bool by_rows() const { return c_step == 1 && (s == 1 || n_step == s * s_step); }
  std::int64_t pitch() const { return s == 1 ? n_step : s_step; }
};

inline constexpr std::int64_t kBlockRows = 256;        // whose sums float holds well
inline constexpr std::int64_t kSumElements = 1 << 18;  // of a task that sums

// Element i as a double, of float, bf16 or double. put: nothing where data is null.
inline double get(const void* data, DType type, std::int64_t i) {
  if (type == DType::kF64) return static_cast<const double*>(data)[i];
  if (type == DType::kBF16) return static_cast<double>(static_cast<float>(static_cast<const BFloat16*>(data)[i]));
  return static_cast<double>(static_cast<const float*>(data)[i]);
}

inline void put(void* data, DType type, std::int64_t i, double value) {
  if (!data) return;
  if (type == DType::kF64)
    static_cast<double*>(data)[i] = value;
  else if (type == DType::kBF16)
    static_cast<BFloat16*>(data)[i] = BFloat16(static_cast<float>(value));
  else
    static_cast<float*>(data)[i] = static_cast<float>(value);
}

// f(place) for every element of a channel, n by n.
template <class F>
void each_of_channel(const ChannelView& v, F&& f) {
  for (std::int64_t n = 0; n < v.n; ++n) {
    for (std::int64_t s = 0; s < v.s; ++s) f(n, s);
  }
}

inline void check_float(DType t) {
  if (t != DType::kF32 && t != DType::kBF16 && t != DType::kF64)
    throw Unsupported(std::string("needs float operands, has ") + std::string(name_of(t)));
}

// How sums over rows are cut.
struct RowCut {
  std::int64_t rows = 0, per_task = 1;
  int tasks = 1;
  RowCut() = default;
  RowCut(std::int64_t all_rows, std::int64_t channels, std::int64_t elements, std::int64_t unit) : rows(all_rows) {
    per_task = std::max<std::int64_t>(1, elements / std::max<std::int64_t>(1, channels * unit)) * unit;
    tasks = static_cast<int>(std::max<std::int64_t>(1, (rows + per_task - 1) / per_task));
  }
  std::int64_t begin(int task) const { return task * per_task; }
  std::int64_t end(int task) const { return std::min(rows, begin(task) + per_task); }
};

template <class T>
RowsOf<const T> rows_at(const void* data, const ChannelView& v, std::int64_t row) {
  return {static_cast<const T*>(data) + row * v.pitch(), v.pitch()};
}
template <class T>
RowsOf<T> rows_at(void* data, const ChannelView& v, std::int64_t row) {
  return {static_cast<T*>(data) + row * v.pitch(), v.pitch()};
}

// Runs f with the element type when all views can go by rows.
template <class F>
bool try_rows(std::initializer_list<const ChannelView*> views, F&& f) {
  const DType type = (*views.begin())->dtype;
  for (const ChannelView* v : views) {
    if (!v->by_rows() || v->dtype != type) return false;
  }
  if (type == DType::kF32) f(float{});
  if (type == DType::kBF16) f(BFloat16{});
  return type == DType::kF32 || type == DType::kBF16;
}

}  // namespace tandem
