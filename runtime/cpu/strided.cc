#include "runtime/cpu/strided.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace tandem {

std::vector<std::int64_t> broadcast_strides(const TensorDesc& d, std::span<const std::int64_t> to) {
  if (d.shape.size() > to.size()) throw std::logic_error(fmt::format("{} does not broadcast to {}", to_string(d.shape), to_string(to)));
  const auto own = d.strides();
  std::vector<std::int64_t> strides(to.size(), 0);
  const std::size_t shift = to.size() - d.shape.size();
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (d.shape[i] == to[shift + i]) {
      strides[shift + i] = own[i];
    } else if (d.shape[i] != 1) {
      throw std::logic_error(fmt::format("{} does not broadcast to {}", to_string(d.shape), to_string(to)));
    }
  }
  return strides;
}

StridedLoop::StridedLoop(std::span<const std::int64_t> shape, std::vector<std::vector<std::int64_t>> strides, std::int64_t task_elements)
    : operands_(strides.size()), size_(elements(shape)), task_elements_(task_elements) {
  if (strides.empty() || strides.size() > kMaxOperands) throw std::logic_error(fmt::format("a loop over {} operands", strides.size()));
  for (const auto& s : strides) {
    if (s.size() != shape.size()) throw std::logic_error(fmt::format("{} strides for rank {}", s.size(), shape.size()));
  }
  std::vector<std::size_t> order(shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    for (const auto& s : strides) {
      if (s[a] != s[b]) return std::abs(s[a]) > std::abs(s[b]);
    }
    return false;
  });
  for (const std::size_t d : order) {
    if (shape[d] == 1) continue;
    Axis axis{shape[d], {}};
    for (std::size_t i = 0; i < operands_; ++i) axis.step[i] = strides[i][d];
    const auto dense = [&](const Axis& outer) {
      for (std::size_t i = 0; i < operands_; ++i) {
        if (outer.step[i] != axis.count * axis.step[i]) return false;
      }
      return true;
    };
    if (!axes_.empty() && dense(axes_.back())) {
      axis.count *= axes_.back().count;
      axes_.back() = axis;
    } else {
      axes_.push_back(axis);
    }
  }
  if (axes_.empty()) {
    axes_.push_back({});
    axes_.back().step.fill(1);
  }
  if (axes_.size() > kMaxAxes) throw Unsupported(fmt::format("a tensor of rank {} with {} strided dimensions", shape.size(), axes_.size()));
  const std::int64_t tasks = (size_ + task_elements_ - 1) / task_elements_;
  if (tasks > std::numeric_limits<int>::max()) throw OutOfMemory(fmt::format("a tensor of shape {} is too large", to_string(shape)));
  tasks_ = static_cast<int>(std::max<std::int64_t>(1, tasks));
}

void StridedLoop::seek(std::int64_t linear, Position& p) const {
  for (std::size_t a = axes_.size(), slot = kMaxAxes; a-- > 0;) {
    const std::int64_t at = linear % axes_[a].count;
    linear /= axes_[a].count;
    p.index[--slot] = at;
    for (std::size_t i = 0; i < operands_; ++i) p.offset[i] += at * axes_[a].step[i];
  }
}

void StridedLoop::next_run(Position& p) const {
  const Axis& inner = axes_.back();
  for (std::size_t i = 0; i < operands_; ++i) p.offset[i] -= p.index.back() * inner.step[i];
  p.index.back() = 0;
  for (std::size_t a = axes_.size() - 1, slot = kMaxAxes - 1; a-- > 0;) {
    const Axis& axis = axes_[a];
    if (++p.index[--slot] < axis.count) {
      for (std::size_t i = 0; i < operands_; ++i) p.offset[i] += axis.step[i];
      return;
    }
    p.index[slot] = 0;
    for (std::size_t i = 0; i < operands_; ++i) p.offset[i] -= (axis.count - 1) * axis.step[i];
  }
}

StridedLoop broadcast_loop(const TensorDesc& out, std::span<const TensorDesc> in, std::int64_t task_elements) {
  std::vector<std::vector<std::int64_t>> strides{out.strides()};
  for (const TensorDesc& d : in) strides.push_back(broadcast_strides(d, out.shape));
  return StridedLoop(out.shape, std::move(strides), task_elements);
}

}  // namespace tandem
