#include "runtime/plan/reorder.h"

#include <fmt/format.h>

#include <cstring>

namespace tandem {
namespace {

constexpr std::int64_t kTaskElements = 1 << 16;

template <class To, class From>
To convert(From v) {
  if constexpr (std::is_same_v<To, From>)
    return v;
  else if constexpr (std::is_arithmetic_v<From> && std::is_arithmetic_v<To>)
    return static_cast<To>(v);
  else if constexpr (std::is_arithmetic_v<From>)
    return To(static_cast<float>(v));
  else if constexpr (std::is_arithmetic_v<To>)
    return static_cast<To>(static_cast<float>(v));
  else
    return To(static_cast<float>(v));
}

// One dimension of the copy, outermost first.
struct Axis {
  std::int64_t count, from_step, to_step;
};

// Dimensions in the destination's memory order, neighbours merged where both sides are dense.
std::vector<Axis> axes_of(const TensorDesc& from, const TensorDesc& to) {
  const auto fs = from.strides(), ts = to.strides();
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < to.shape.size(); ++i) {
    if (!(to.layout == Layout::kChannelsLast && i == 1)) order.push_back(i);
  }
  if (to.layout == Layout::kChannelsLast) order.push_back(1);
  std::vector<Axis> axes;
  for (const std::size_t i : order) {
    if (to.shape[i] == 1) continue;
    const Axis a{to.shape[i], fs[i], ts[i]};
    if (!axes.empty() && axes.back().from_step == a.count * a.from_step && axes.back().to_step == a.count * a.to_step) {
      axes.back() = {axes.back().count * a.count, a.from_step, a.to_step};
    } else {
      axes.push_back(a);
    }
  }
  if (axes.empty()) axes.push_back({1, 1, 1});
  return axes;
}

template <class From, class To>
void copy_range(const std::vector<Axis>& axes, const From* source, To* destination, std::int64_t first_row, std::int64_t rows) {
  const Axis& inner = axes.back();
  for (std::int64_t r = first_row; r < first_row + rows; ++r) {
    std::int64_t rest = r, from = 0, to = 0;
    for (std::size_t a = axes.size() - 1; a-- > 0;) {
      const std::int64_t at = rest % axes[a].count;
      rest /= axes[a].count;
      from += at * axes[a].from_step;
      to += at * axes[a].to_step;
    }
    if constexpr (std::is_same_v<From, To>) {
      if (inner.from_step == 1 && inner.to_step == 1) {
        std::memcpy(destination + to, source + from, static_cast<std::size_t>(inner.count) * sizeof(To));
        continue;
      }
    }
    for (std::int64_t i = 0; i < inner.count; ++i) destination[to + i * inner.to_step] = convert<To>(source[from + i * inner.from_step]);
  }
}

template <class F>
void dispatch_pair(DType from, DType to, F&& f) {
  if (from == to) {
    switch (size_of(from)) {  // only the width matters
      case 1:
        return f(std::uint8_t{}, std::uint8_t{});
      case 2:
        return f(std::uint16_t{}, std::uint16_t{});
      case 4:
        return f(std::uint32_t{}, std::uint32_t{});
      default:
        return f(std::uint64_t{}, std::uint64_t{});
    }
  }
  const auto floating = [](DType t, auto&& g) {
    switch (t) {
      case DType::kF32:
        return g(float{});
      case DType::kBF16:
        return g(BFloat16{});
      case DType::kF16:
        return g(Float16{});
      case DType::kF64:
        return g(double{});
      default:
        throw std::logic_error(fmt::format("reorder cannot convert {}", name_of(t)));
    }
  };
  floating(from, [&](auto a) { floating(to, [&](auto b) { f(a, b); }); });
}

}  // namespace

bool same_memory(const TensorDesc& a, const TensorDesc& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  const auto x = a.strides(), y = b.strides();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (a.shape[i] != 1 && x[i] != y[i]) return false;
  }
  return a.bytes() == b.bytes();
}

Kernel reorder_kernel(const TensorDesc& from, const TensorDesc& to) {
  const auto axes = axes_of(from, to);
  const std::int64_t total = to.size(), row = axes.back().count, rows = row == 0 ? 0 : total / row;
  const std::int64_t rows_per_task = std::max<std::int64_t>(1, kTaskElements / std::max<std::int64_t>(1, row));
  const int tasks = static_cast<int>(std::max<std::int64_t>(1, (rows + rows_per_task - 1) / rows_per_task));
  Kernel kernel;
  dispatch_pair(from.dtype, to.dtype, [&](auto a, auto b) {
    using From = decltype(a);
    using To = decltype(b);
    kernel = Kernel::single("reorder", tasks, [axes, rows, rows_per_task](const KernelArgs& k, int task) {
      const std::int64_t first = task * rows_per_task;
      copy_range(axes, k.input<From>(0), k.output<To>(0), first, std::min(rows_per_task, rows - first));
    });
  });
  return kernel;
}

void reorder(const TensorDesc& from, const void* source, const TensorDesc& to, void* destination) {
  const Kernel kernel = reorder_kernel(from, to);
  const void* in[] = {source};
  void* out[] = {destination};
  const KernelArgs args{in, out, nullptr, nullptr, nullptr};
  for (int t = 0; t < kernel.stages[0].tasks; ++t) kernel.stages[0].run(args, t);
}

}  // namespace tandem
