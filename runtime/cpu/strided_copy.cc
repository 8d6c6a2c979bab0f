#include "runtime/cpu/strided_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "runtime/cpu/activation_rows.h"

namespace tandem {
namespace {

constexpr std::int64_t kTaskElements = 1 << 16;
constexpr std::size_t kMaxAxes = 64;  // more axes of at least two elements than an int64 count allows

template <class From, class To>
void copy_row(const From* source, To* destination, const StridedCopy::Axis& axis) {
  if (axis.to_step == 1 && axis.from_step == 1) {
    if constexpr (std::is_same_v<From, To>) {
      std::memcpy(destination, source, static_cast<std::size_t>(axis.count) * sizeof(To));
    } else if constexpr (std::is_same_v<From, BFloat16> && std::is_same_v<To, float>) {
      widen_row(source, destination, axis.count, false);
    } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, BFloat16>) {
      narrow_row(source, destination, axis.count);
    } else {
      for (std::int64_t i = 0; i < axis.count; ++i) destination[i] = number_as<To>(source[i]);
    }
  } else if (axis.to_step == 1 && axis.from_step == 0) {
    std::fill_n(destination, axis.count, number_as<To>(*source));
  } else {
    for (std::int64_t i = 0; i < axis.count; ++i) destination[i * axis.to_step] = number_as<To>(source[i * axis.from_step]);
  }
}

// Rows whose elements of equal index are neighbours in the source: read along them, so that every cache line is used whole.
template <class From, class To>
void copy_tile(const From* source, To* destination, const StridedCopy::Axis& axis, std::int64_t rows, std::int64_t row_step) {
  const std::int64_t block = std::clamp<std::int64_t>(1024 / axis.count, 16, 256);
  for (std::int64_t r0 = 0; r0 < rows; r0 += block) {
    const std::int64_t n = std::min(block, rows - r0);
    for (std::int64_t i = 0; i < axis.count; ++i) {
      const From* s = source + r0 + i * axis.from_step;
      To* d = destination + r0 * row_step + i * axis.to_step;
      for (std::int64_t r = 0; r < n; ++r) d[r * row_step] = number_as<To>(s[r]);
    }
  }
}

}  // namespace

template <class From, class To>
void StridedCopy::copy_rows(const StridedCopy& c, const void* source, void* destination, std::int64_t first, std::int64_t rows) {
  const std::size_t outer = c.axes_.size() - 1;
  const Axis& inner = c.axes_.back();
  std::array<std::int64_t, kMaxAxes> at;
  std::int64_t from = c.from_offset_, to = c.to_offset_, rest = first;
  for (std::size_t a = outer; a-- > 0;) {
    at[a] = rest % c.axes_[a].count;
    rest /= c.axes_[a].count;
    from += at[a] * c.axes_[a].from_step;
    to += at[a] * c.axes_[a].to_step;
  }
  const auto* s = static_cast<const From*>(source);
  auto* d = static_cast<To*>(destination);
  while (rows > 0) {
    std::int64_t step = 1;
    if (c.tiled_) {
      step = std::min(rows, c.axes_[outer - 1].count - at[outer - 1]);
      copy_tile(s + from, d + to, inner, step, c.axes_[outer - 1].to_step);
    } else {
      copy_row(s + from, d + to, inner);
    }
    rows -= step;
    for (std::size_t a = outer; a-- > 0; step = 1) {
      const Axis& axis = c.axes_[a];
      at[a] += step;
      from += step * axis.from_step;
      to += step * axis.to_step;
      if (at[a] < axis.count) break;
      at[a] = 0;
      from -= axis.count * axis.from_step;
      to -= axis.count * axis.to_step;
    }
  }
}

StridedCopy::StridedCopy(const Shape& box, const StridedSide& from, const StridedSide& to) : from_offset_(from.offset), to_offset_(to.offset) {
  for (std::size_t i = 0; i < box.size(); ++i) {
    if (box[i] != 1) axes_.push_back({box[i], from.strides[i], to.strides[i]});
  }
  const std::int64_t total = elements(box);
  if (total == 0) return;
  sort_axes();
  rows_ = total / axes_.back().count;
  rows_per_task_ = std::max<std::int64_t>(1, kTaskElements / axes_.back().count);
  tasks_ = static_cast<int>((rows_ + rows_per_task_ - 1) / rows_per_task_);
  choose_types(from.dtype, to.dtype);
}

void StridedCopy::choose_types(DType from, DType to) {
  const auto choose = [this](auto a, auto b) { copy_ = &copy_rows<decltype(a), decltype(b)>; };
  if (from == to) return dispatch_width(size_of(from), [&](auto tag) { choose(tag, tag); });
  const auto floating = [&](DType t, auto&& f) {
    switch (t) {
      case DType::kF32:
        return f(float{});
      case DType::kBF16:
        return f(BFloat16{});
      case DType::kF16:
        return f(Float16{});
      case DType::kF64:
        return f(double{});
      default:
        throw std::logic_error(fmt::format("a copy cannot convert {} to {}", name_of(from), name_of(to)));
    }
  };
  floating(from, [&](auto a) { floating(to, [&](auto b) { choose(a, b); }); });
}

// The destination's memory order, neighbours merged where both sides allow it.
void StridedCopy::sort_axes() {
  std::stable_sort(axes_.begin(), axes_.end(), [](const Axis& a, const Axis& b) { return std::abs(a.to_step) > std::abs(b.to_step); });
  std::vector<Axis> merged;
  for (const Axis& a : axes_) {
    if (!merged.empty() && merged.back().from_step == a.count * a.from_step && merged.back().to_step == a.count * a.to_step) {
      merged.back() = {merged.back().count * a.count, a.from_step, a.to_step};
    } else {
      merged.push_back(a);
    }
  }
  if (merged.empty()) merged.push_back({1, 1, 1});
  axes_ = std::move(merged);
  if (axes_.back().from_step == 1 || axes_.back().from_step == 0) return;
  const auto dense = std::find_if(axes_.begin(), axes_.end() - 1, [](const Axis& a) { return a.from_step == 1; });
  if (dense == axes_.end() - 1) return;
  std::rotate(dense, dense + 1, axes_.end() - 1);
  tiled_ = true;
}

void StridedCopy::run_task(const void* source, void* destination, int task) const {
  const std::int64_t first = task * rows_per_task_;
  copy_(*this, source, destination, first, std::min(rows_per_task_, rows_ - first));
}

void StridedCopy::run(const void* source, void* destination) const {
  if (tasks_ > 0) copy_(*this, source, destination, 0, rows_);
}

}  // namespace tandem
