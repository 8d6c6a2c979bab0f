#include <algorithm>
#include <numeric>

#include "runtime/ops/gather_sum.h"
#include "runtime/ops/gradient_support.h"
#include "runtime/ops/slice.h"

namespace tandem {
namespace {

// Zeros around, or cropped where negative.
ValueId padded(GradientContext& c, ValueId v, std::vector<std::int64_t> before, const std::vector<std::int64_t>& after) {
  if (std::all_of(before.begin(), before.end(), [](std::int64_t n) { return n == 0; }) &&
      std::all_of(after.begin(), after.end(), [](std::int64_t n) { return n == 0; })) {
    return v;
  }
  before.insert(before.end(), after.begin(), after.end());
  return c.emit("Pad", {v, c.ints(before)});
}

std::vector<std::int64_t> negated(std::vector<std::int64_t> v) {
  for (std::int64_t& n : v) n = -n;
  return v;
}

// The map from `dim` elements that takes element index[i] to output i, or nothing where that is -1; transposed.
ResizeTaps transposed_selection(const std::vector<std::int64_t>& index, std::int64_t dim) {
  ResizeTaps t;
  t.first.push_back(0);
  for (const std::int64_t i : index) {
    if (i >= 0) {
      t.index.push_back(i);
      t.weight.push_back(1);
    }
    t.first.push_back(static_cast<std::int64_t>(t.index.size()));
  }
  return transposed(t, dim);
}

// Other pad modes: elements that were copied get the sum of their copies' gradients.
ValueId pad_sums(GradientContext& c, const Padding& p) {
  const Shape x = c.shape(c.input(0)), y = c.shape(c.output());
  std::vector<AxisTaps> maps;
  for (std::size_t a = 0; a < x.size(); ++a) {
    if (p.before[a] == 0 && p.after[a] == 0) continue;
    std::vector<std::int64_t> index(static_cast<std::size_t>(y[a]), -1);
    for (const Stretch& s : stretches(p.mode, x[a], p.before[a], p.after[a])) {
      for (std::int64_t i = 0; i < s.repeats * s.count; ++i) index[static_cast<std::size_t>(s.to + i)] = s.from + i % s.count * s.step;
    }
    maps.push_back({a, transposed_selection(index, x[a])});
  }
  return emit_gather_sum(c, c.dy(), maps);
}

}  // namespace

void slice_gradient(GradientContext& c) {
  const auto& box = c.params<SliceBox>();
  const Shape x = c.shape(c.input(0)), y = c.shape(c.output());
  std::vector<AxisTaps> strided;
  std::vector<std::int64_t> before(x.size(), 0), after(x.size(), 0);
  for (std::size_t a = 0; a < x.size(); ++a) {
    if (box.steps[a] == 1) {
      before[a] = y[a] == 0 ? 0 : box.starts[a];
      after[a] = x[a] - y[a] - before[a];
      continue;
    }
    std::vector<std::int64_t> index(static_cast<std::size_t>(y[a]));
    for (std::size_t i = 0; i < index.size(); ++i) index[i] = box.starts[a] + static_cast<std::int64_t>(i) * box.steps[a];
    strided.push_back({a, transposed_selection(index, x[a])});
  }
  c.set(0, padded(c, emit_gather_sum(c, c.dy(), strided), before, after));
}

void pad_gradient(GradientContext& c) {
  const auto& p = c.params<Padding>();
  if (p.mode != PadMode::kConstant) return c.set(0, pad_sums(c, p));
  const ValueId dx = padded(c, c.dy(), negated(p.before), negated(p.after));
  c.set(0, dx);
  if (!c.wants(2)) return;
  // what lies around: the inner part cancels exactly
  const ValueId around = c.emit("Sub", {c.dy(), padded(c, dx, p.before, p.after)});
  c.set(2, c.reshape(c.sum_to(around, {}), c.shape(c.input(2))));
}

}  // namespace tandem
