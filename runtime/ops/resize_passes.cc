#include "runtime/ops/resize_passes.h"

#include <algorithm>

#include "runtime/cpu/convert.h"
#include "runtime/cpu/strided.h"

namespace tandem {
namespace {

// Where a pass reads or writes: the operand or output, or an offset into the step's shared memory.
struct Place {
  TensorDesc desc;
  bool shared = false;
  std::size_t offset = 0;
  const void* source(const KernelArgs& k) const { return shared ? k.shared + offset : k.in[0]; }
  void* target(const KernelArgs& k) const { return shared ? static_cast<void*>(k.shared + offset) : k.out[0]; }
};

// Taps in the type of the sums.
template <class A>
struct Weights {
  std::vector<std::int64_t> first, from;  // operand offsets
  std::vector<A> weight;
};

template <class A>
Weights<A> weights_of(const ResizeTaps& t, std::int64_t step) {
  Weights<A> w{t.first, t.index, std::vector<A>(t.weight.begin(), t.weight.end())};
  for (std::int64_t& i : w.from) i *= step;
  return w;
}

// n neighbouring elements of one output index.
template <class S, class A, class D>
void sum_run(const Weights<A>& w, std::int64_t j, const S* s, D* d, std::int64_t n) {
  constexpr std::int64_t kBlock = 16;
  const auto first = static_cast<std::size_t>(w.first[static_cast<std::size_t>(j)]),
             last = static_cast<std::size_t>(w.first[static_cast<std::size_t>(j) + 1]);
  std::int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    A sum[kBlock] = {};
    for (std::size_t t = first; t < last; ++t) {
      const S* x = s + w.from[t] + i;
      const A weight = w.weight[t];
      for (std::int64_t b = 0; b < kBlock; ++b) sum[b] += weight * static_cast<A>(x[b]);
    }
    for (std::int64_t b = 0; b < kBlock; ++b) d[i + b] = static_cast<D>(sum[b]);
  }
  for (; i < n; ++i) {
    A sum = 0;
    for (std::size_t t = first; t < last; ++t) sum += w.weight[t] * static_cast<A>(s[w.from[t] + i]);
    d[i] = static_cast<D>(sum);
  }
}

template <class S, class A, class D>
Stage pass_stage(const Place& from, const Place& to, std::size_t axis, const ResizeTaps& taps) {
  auto fs = from.desc.strides(), ts = to.desc.strides();
  const std::int64_t out = to.desc.shape[axis], out_step = ts[axis];
  const Weights<A> w = weights_of<A>(taps, fs[axis]);
  Shape rest = to.desc.shape;
  rest[axis] = 1;
  const std::int64_t cost = std::max<std::int64_t>(1, static_cast<std::int64_t>(w.weight.size()));
  const StridedLoop loop(rest, {ts, fs}, std::max<std::int64_t>(1, 2 * kTaskElements / cost));
  return {loop.tasks(), [=](const KernelArgs& k, int task) {
            loop.for_each_run(task, [&](const std::int64_t* at, std::int64_t n) {
              const S* s = static_cast<const S*>(from.source(k)) + at[1];
              D* d = static_cast<D*>(to.target(k)) + at[0];
              if (loop.step(0) == 1 && loop.step(1) == 1) {
                for (std::int64_t j = 0; j < out; ++j) sum_run(w, j, s, d + j * out_step, n);
                return;
              }
              for (std::int64_t i = 0; i < n; ++i) {
                for (std::int64_t j = 0; j < out; ++j) sum_run(w, j, s + i * loop.step(1), d + i * loop.step(0) + j * out_step, 1);
              }
            });
          }};
}

Stage typed_pass(const Place& from, const Place& to, std::size_t axis, const ResizeTaps& taps) {
  if (from.desc.dtype == DType::kF64) return pass_stage<double, double, double>(from, to, axis, taps);
  const bool half_in = from.desc.dtype == DType::kBF16, half_out = to.desc.dtype == DType::kBF16;
  if (half_in && half_out) return pass_stage<BFloat16, float, BFloat16>(from, to, axis, taps);
  if (half_in) return pass_stage<BFloat16, float, float>(from, to, axis, taps);
  if (half_out) return pass_stage<float, float, BFloat16>(from, to, axis, taps);
  return pass_stage<float, float, float>(from, to, axis, taps);
}

// Integers are interpolated in double and truncated, as a cast does.
Stage convert_stage(const Place& from, const Place& to) {
  const StridedLoop loop(to.desc.shape, {to.desc.strides(), from.desc.strides()});
  const ConvertFn convert = converter(from.desc.dtype, to.desc.dtype);
  const auto from_bytes = static_cast<std::int64_t>(size_of(from.desc.dtype)), to_bytes = static_cast<std::int64_t>(size_of(to.desc.dtype));
  return {loop.tasks(), [=](const KernelArgs& k, int task) {
            loop.for_each_run(task, [&](const std::int64_t* at, std::int64_t n) {
              const auto* s = static_cast<const std::byte*>(from.source(k)) + at[1] * from_bytes;
              auto* d = static_cast<std::byte*>(to.target(k)) + at[0] * to_bytes;
              if (loop.step(0) == 1 && loop.step(1) == 1) return convert(s, d, n);
              for (std::int64_t i = 0; i < n; ++i) convert(s + i * loop.step(1) * from_bytes, d + i * loop.step(0) * to_bytes, 1);
            });
          }};
}

// Books shared memory for a value of that shape, dense in the output's layout.
Place shared_place(Kernel& kernel, DType t, const Shape& shape, Layout layout) {
  Place p{{.dtype = t, .shape = shape, .layout = layout, .channel_pitch = layout == Layout::kChannelsLast ? shape[1] : 0}, true, kernel.shared_bytes};
  kernel.shared_bytes += (p.desc.bytes() + 63) / 64 * 64;
  return p;
}

// Sums are floats, for doubles doubles.
void add_passes(Kernel& kernel, Place at, const Place& end, const std::vector<AxisTaps>& axes) {
  const DType sums = at.desc.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  Shape shape = at.desc.shape;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    shape[axes[i].axis] = static_cast<std::int64_t>(axes[i].taps.first.size()) - 1;
    const bool last = i + 1 == axes.size();
    const Place next = last ? end : shared_place(kernel, sums, shape, end.desc.layout);
    kernel.stages.push_back(typed_pass(at, next, axes[i].axis, axes[i].taps));
    at = next;
  }
}

}  // namespace

void add_axis_passes(Kernel& kernel, const TensorDesc& in, const TensorDesc& out, const std::vector<AxisTaps>& axes) {
  add_passes(kernel, {in}, {out}, axes);
}

void add_resize_passes(Kernel& kernel, const TensorDesc& in, const TensorDesc& out, const ResizeRule& rule, const std::vector<ResizeAxis>& all) {
  std::vector<std::size_t> axes;
  for (std::size_t a = 0; a < all.size(); ++a) {
    if (!all[a].identity) axes.push_back(a);
  }
  std::stable_sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) { return all[a].scale < all[b].scale; });
  std::vector<AxisTaps> taps;
  for (const std::size_t a : axes) taps.push_back({a, resize_taps(rule, all[a])});
  if (is_float(in.dtype)) return add_passes(kernel, {in}, {out}, taps);
  const Place wide = shared_place(kernel, DType::kF64, in.shape, out.layout), result = shared_place(kernel, DType::kF64, out.shape, out.layout);
  kernel.stages.push_back(convert_stage({in}, wide));
  add_passes(kernel, wide, result, taps);
  kernel.stages.push_back(convert_stage(result, {out}));
}

}  // namespace tandem
