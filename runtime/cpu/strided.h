// Iteration over tensors with arbitrary strides: broadcast operands (stride 0), channels-last tensors with a pitch, transposed views. A
// kernel is then a simple inner loop over one run of elements. Everything is computed when the kernel is prepared; running allocates
// nothing and may happen on several threads at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ops/op.h"

namespace tandem {

// Elements of one task where the work of an element is small. A constant: the cut depends on shapes alone.
inline constexpr std::int64_t kTaskElements = 1 << 15;

// Strides (in elements) of a tensor seen under the shape `to`, to which it broadcasts: 0 along dimensions it is repeated over.
std::vector<std::int64_t> broadcast_strides(const TensorDesc&, std::span<const std::int64_t> to);

// Walks over all index tuples of `shape` once, for several operands at a time. Dimensions are sorted by operand 0's strides (ties: operand
// 1's, ...), largest first, so that operand 0 is walked in its memory order; dimensions of size 1 vanish and neighbours that are dense for
// every operand become one. The innermost dimension is handed out as runs: `count` elements, operand i stepping by step(i).
class StridedLoop {
 public:
  static constexpr std::size_t kMaxOperands = 8;
  // strides[i][d]: operand i's step along dimension d of `shape`. Throws std::logic_error for more than kMaxOperands operands or ranks that
  // do not fit.
  StridedLoop(std::span<const std::int64_t> shape, std::vector<std::vector<std::int64_t>> strides, std::int64_t task_elements = kTaskElements);

  int tasks() const { return tasks_; }  // at least 1, also when there is nothing to do
  std::int64_t size() const { return size_; }
  std::size_t operands() const { return operands_; }
  std::int64_t step(std::size_t operand) const { return axes_.back().step[operand]; }  // within a run; 1 where runs have one element
  std::int64_t run() const { return axes_.back().count; }                              // elements of a whole run

  // Calls f(offsets, count) for each run of the task, in order; offsets[i] is where operand i's run begins, in elements. The first and last
  // run of a task may be parts of a whole run.
  template <class F>
  void for_each_run(int task, F&& f) const {
    const std::int64_t begin = task * task_elements_;
    for_each_run_in(begin, std::min(begin + task_elements_, size_), f);
  }
  // The same for the elements [begin, end), counted in the order of the walk.
  template <class F>
  void for_each_run_in(std::int64_t begin, std::int64_t end, F&& f) const {
    if (begin >= end) return;
    Position p;
    seek(begin, p);
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t n = std::min(axes_.back().count - p.index.back(), end - at);
      f(static_cast<const std::int64_t*>(p.offset.data()), n);
      at += n;
      if (at < end) next_run(p);
    }
  }

 private:
  static constexpr std::size_t kMaxAxes = 16;
  struct Axis {
    std::int64_t count = 1;
    std::array<std::int64_t, kMaxOperands> step{};
  };
  struct Position {
    std::array<std::int64_t, kMaxOperands> offset{};
    std::array<std::int64_t, kMaxAxes> index{};  // right-aligned: index.back() counts within the run
  };
  void seek(std::int64_t linear, Position&) const;
  void next_run(Position&) const;

  std::size_t operands_ = 0;
  std::vector<Axis> axes_;  // outermost first, at least one
  std::int64_t size_ = 0, task_elements_ = 0;
  int tasks_ = 1;
};

// The usual loop: operand 0 is `out`, then the operands, broadcast to its shape.
StridedLoop broadcast_loop(const TensorDesc& out, std::span<const TensorDesc> in, std::int64_t task_elements = kTaskElements);

}  // namespace tandem
