#include "runtime/ops/conv_plain.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/ops/float_access.h"
#include "runtime/ops/packed_operand.h"

namespace tandem {
namespace {

constexpr std::int64_t kTaskProducts = 1 << 18;
constexpr std::int64_t kPackedAtOnce = kTaskProducts / 4;  // weights

template <class F>
void dispatch_float(DType t, F&& f) {
  if (t == DType::kBF16) return f(BFloat16{});
  if (t == DType::kF64) return f(double{});
  f(float{});
}

struct Job {
  PlainConv conv;
  TensorDesc x, w, b, y, residual;
  std::vector<std::int64_t> xs, ys, rs;  // strides
  std::int64_t taps, channels, outputs;  // of one group
  std::int64_t positions, block, blocks;
  bool rounded;  // weights are rounded to bf16
  PackedOperand packed;
  std::int64_t depth() const { return taps * channels; }
  std::int64_t weights() const { return conv.group * depth() * outputs; }
};

// Weights [from, to) of the packed order, out of W's own.
template <class Acc>
void pack_weights(const Job& j, const void* w, std::int64_t from, std::int64_t to, Acc* destination) {
  dispatch_float(j.w.dtype, [&](auto tag) {
    const auto* source = static_cast<const decltype(tag)*>(w);
    for (std::int64_t i = from; i < to; ++i) {
      const std::int64_t o = i % j.outputs, c = i / j.outputs % j.channels, t = i / j.outputs / j.channels % j.taps, g = i / j.outputs / j.depth();
      const std::int64_t at =
          j.conv.transposed ? ((g * j.channels + c) * j.outputs + o) * j.taps + t : ((g * j.outputs + o) * j.channels + c) * j.taps + t;
      destination[i] = j.rounded ? number_as<Acc>(BFloat16(number_as<float>(source[at]))) : number_as<Acc>(source[at]);
    }
  });
}

// Input coordinate that tap t of output y reads in dimension d, or -1.
std::int64_t input_cell(const Job& j, std::size_t d, std::int64_t y, std::int64_t t) {
  const Window& w = j.conv.window;
  std::int64_t x;
  if (j.conv.transposed) {
    const std::int64_t spread = y + w.begin[d] - t * w.dilations[d];
    if (spread < 0 || spread % w.strides[d] != 0) return -1;
    x = spread / w.strides[d];
  } else {
    x = y * w.strides[d] - w.begin[d] + t * w.dilations[d];
  }
  return x >= 0 && x < j.x.shape[d + 2] ? x : -1;
}

// Everything under the window of one position and group: [tap][channel], zero outside the input.
template <class Acc>
void gather(const Job& j, const void* data, std::int64_t image, std::span<const std::int64_t> y, std::int64_t group, Acc* destination) {
  dispatch_float(j.x.dtype, [&](auto tag) {
    const auto* x = static_cast<const decltype(tag)*>(data) + image * j.xs[0] + group * j.channels * j.xs[1];
    for (std::int64_t t = 0; t < j.taps; ++t, destination += j.channels) {
      std::int64_t rest = t, offset = 0;
      bool inside = true;
      for (std::size_t d = y.size(); d-- > 0;) {
        const std::int64_t k = j.conv.window.kernel[d], cell = input_cell(j, d, y[d], rest % k);
        rest /= k;
        inside = inside && cell >= 0;
        offset += cell * j.xs[d + 2];
      }
      if (!inside) {
        std::fill_n(destination, j.channels, Acc(0));
        continue;
      }
      for (std::int64_t c = 0; c < j.channels; ++c) {
        const Acc v = number_as<Acc>(x[offset + c * j.xs[1]]);
        destination[c] = j.conv.pre_relu && v < 0 ? Acc(0) : v;
      }
    }
  });
}

template <class Acc>
void finish(const Job& j, const KernelArgs& k, std::int64_t image, std::span<const std::int64_t> y, std::int64_t group, const Acc* sums) {
  std::int64_t to = image * j.ys[0], from = j.residual ? image * j.rs[0] : 0;
  for (std::size_t d = 0; d < y.size(); ++d) {
    to += y[d] * j.ys[d + 2];
    if (j.residual) from += y[d] * j.rs[d + 2];
  }
  dispatch_float(j.y.dtype, [&](auto tag) {
    auto* out = static_cast<decltype(tag)*>(k.out[0]);
    for (std::int64_t o = 0; o < j.outputs; ++o) {
      const std::int64_t channel = group * j.outputs + o;
      Acc v = sums[o];
      if (j.b) v += static_cast<Acc>(load_float(k.in[2], j.b.dtype, channel));
      if (j.residual) v += static_cast<Acc>(load_float(k.in[j.conv.residual], j.residual.dtype, from + channel * j.rs[1]));
      out[to + channel * j.ys[1]] = number_as<decltype(tag)>(activate(j.conv.activation, v));
    }
  });
}

template <class Acc>
void run_task(const Job& j, const KernelArgs& k, int task) {
  const Acc* weights = reinterpret_cast<const Acc*>(j.packed.data(k));
  Acc* window = reinterpret_cast<Acc*>(k.scratch);
  Acc* sums = window + j.depth();
  const std::int64_t image = task / j.blocks, first = task % j.blocks * j.block, last = std::min(j.positions, first + j.block);
  std::int64_t at[32];
  const std::span<std::int64_t> y(at, j.conv.window.rank());
  for (std::int64_t p = first; p < last; ++p) {
    std::int64_t rest = p;
    for (std::size_t d = y.size(); d-- > 0;) {
      y[d] = rest % j.y.shape[d + 2];
      rest /= j.y.shape[d + 2];
    }
    for (std::int64_t g = 0; g < j.conv.group; ++g) {
      gather(j, k.in[0], image, y, g, window);
      std::fill_n(sums, j.outputs, Acc(0));
      const Acc* w = weights + g * j.depth() * j.outputs;
      for (std::int64_t i = 0; i < j.depth(); ++i, w += j.outputs) {
        for (std::int64_t o = 0; o < j.outputs; ++o) sums[o] += window[i] * w[o];
      }
      finish(j, k, image, y, g, sums);
    }
  }
}

template <class Acc>
Kernel build(CpuContext& c, Job job) {
  Kernel kernel;
  kernel.implementation = std::is_same_v<Acc, double> ? "plain:conv_f64" : "plain:conv_f32";
  kernel.scratch_bytes = static_cast<std::size_t>(job.depth() + job.outputs) * sizeof(Acc);
  const std::int64_t parts = (job.weights() + kPackedAtOnce - 1) / kPackedAtOnce;
  job.packed = PackedOperand(c, kernel, 1, fmt::format("plain_conv:{}:g{}:t{}:r{}", sizeof(Acc), job.conv.group, job.conv.transposed, job.rounded),
                             static_cast<std::size_t>(job.weights()) * sizeof(Acc), parts, [job](const void* w, std::int64_t part, std::byte* to) {
                               const std::int64_t first = part * kPackedAtOnce, last = std::min(job.weights(), first + kPackedAtOnce);
                               pack_weights<Acc>(job, w, first, last, reinterpret_cast<Acc*>(to));
                             });
  const std::int64_t tasks = job.y.shape[0] * job.blocks;
  kernel.stages.push_back({static_cast<int>(tasks), [job](const KernelArgs& k, int task) { run_task<Acc>(job, k, task); }});
  if (job.residual && may_take_residual(c, job.conv.residual)) kernel.in_place = 1u << job.conv.residual;
  return kernel;
}

}  // namespace

Kernel plain_conv(CpuContext& c, PlainConv conv) {
  Job j;
  j.x = c.in[0];
  j.w = c.in[1];
  j.y = c.out[0];
  if (c.has_input(2)) j.b = c.in[2];
  if (conv.residual != 0 && c.has_input(conv.residual)) j.residual = c.in[conv.residual];
  j.xs = j.x.strides();
  j.ys = j.y.strides();
  if (j.residual) j.rs = j.residual.strides();
  j.taps = conv.window.taps();
  j.channels = j.x.shape[1] / conv.group;
  j.outputs = j.y.shape[1] / conv.group;
  j.positions = elements(spatial(j.y.shape));
  const std::int64_t products = std::max<std::int64_t>(1, j.depth() * j.y.shape[1]);
  j.block = std::clamp<std::int64_t>(kTaskProducts / products, 1, std::max<std::int64_t>(1, j.positions));
  j.blocks = (j.positions + j.block - 1) / j.block;
  j.rounded = j.y.dtype == DType::kBF16 && j.w.dtype == DType::kF32;
  j.conv = std::move(conv);
  return j.y.dtype == DType::kF64 ? build<double>(c, std::move(j)) : build<float>(c, std::move(j));
}

}  // namespace tandem
