// BatchNormalization (opset 15): y = (x - mean) / sqrt(var + epsilon) * scale + bias per channel. Inference uses the given statistics;
// training_mode those of the batch (population variance) and gives the running ones: old * momentum + batch * (1 - momentum).
#include <algorithm>
#include <cmath>

#include "runtime/cpu/map.h"
#include "runtime/graph/gradient.h"
#include "runtime/ops/along_axis.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

struct BatchNormParams {
  float epsilon, momentum;
  bool training;
};

void infer(InferContext& c) {
  c.expect_dtype(0, kFloatTypes);
  c.expect_rank(0, 1, 8);
  const std::int64_t channels = c.rank(0) == 1 ? 1 : c.shape(0)[1];
  for (std::size_t i = 1; i < 5; ++i) {
    c.expect_dtype(i, kFloatTypes);
    if (c.shape(i) != Shape{channels}) {
      throw InvalidModel("operand " + std::to_string(i) + " must have one value for each of the " + std::to_string(channels) +
                         " channels, has shape " + to_string(c.shape(i)));
    }
  }
  const BatchNormParams p{c.attributes().real("epsilon", 1e-5f), c.attributes().real("momentum", 0.9f),
                          c.attributes().integer("training_mode", 0) != 0};
  if (!p.training && (c.has_output(1) || c.has_output(2))) throw InvalidModel("statistics are outputs only with training_mode 1");
  c.set_output(0, c.dtype(0), c.shape(0));
  c.set_output(1, c.dtype(3), {channels});
  c.set_output(2, c.dtype(4), {channels});
  c.set_params(p);
}

// Per-channel factors: y = x * scale + shift, in the type of x's arithmetic.
template <class T>
struct Factors {
  T* scale;
  T* shift;
};

template <class T>
Tensor ones_of(const Shape& shape) {
  Tensor t(dtype_of<T>(), shape);
  std::fill_n(t.as_mutable<T>().data(), t.size(), T{1});
  return t;
}

template <class T>
T parameter(const KernelArgs& k, const TensorDesc& d, std::size_t i, std::int64_t c) {
  if (d.dtype == DType::kF64) return static_cast<T>(k.input<double>(i)[c]);
  return static_cast<T>(k.input<float>(i)[c]);
}

template <class T>
void set_factors(Factors<T> f, const KernelArgs& k, const std::vector<TensorDesc>& in, std::int64_t c, double mean, double variance, double epsilon) {
  const double scale = parameter<double>(k, in[1], 1, c) / std::sqrt(variance + epsilon);
  f.scale[c] = static_cast<T>(scale);
  f.shift[c] = static_cast<T>(parameter<double>(k, in[2], 2, c) - mean * scale);
}

// Walks x and y with the channel innermost (channels-last) or as a run of one channel (plain).
template <class T>
Stage apply_stage(const TensorDesc& in, const TensorDesc& out, std::int64_t channels) {
  const std::vector<std::int64_t> shape = in.shape;
  std::vector<std::int64_t> by_channel(shape.size(), 0);
  if (shape.size() > 1) by_channel[1] = 1;
  const StridedLoop loop(shape, {out.strides(), in.strides(), by_channel});
  return {loop.tasks(), [loop, channels](const KernelArgs& k, int task) {
            const T* scale = reinterpret_cast<const T*>(k.shared);
            const T* shift = scale + channels;
            loop.for_each_run(task, [&](const std::int64_t* at, std::int64_t n) {
              T* y = k.output<T>(0) + at[0];
              const T* x = k.input<T>(0) + at[1];
              const std::int64_t sy = loop.step(0), sx = loop.step(1), sc = loop.step(2);
              for (std::int64_t i = 0; i < n; ++i) y[i * sy] = x[i * sx] * scale[at[2] + i * sc] + shift[at[2] + i * sc];
            });
          }};
}

void store(const KernelArgs& k, const TensorDesc& d, std::size_t output, std::int64_t c, double value) {
  if (!d) return;
  if (d.dtype == DType::kF64)
    k.output<double>(output)[c] = value;
  else
    k.output<float>(output)[c] = static_cast<float>(value);
}

template <class T>
Stage statistics_stage(const CpuContext& c, std::int64_t channels) {
  const BatchNormParams p = c.params<BatchNormParams>();
  Shape one = c.in[0].shape;
  const std::int64_t step = one.size() > 1 ? c.in[0].strides()[1] : 0;
  if (one.size() > 1) one[1] = 1;
  const StridedLoop loop(one, {c.in[0].strides()});
  const std::vector<TensorDesc> in = c.in, out = c.out;
  return {static_cast<int>(channels), [=](const KernelArgs& k, int channel) {
            const auto walk = [&](auto&& f) {
              for (int task = 0; task < loop.tasks(); ++task) {
                loop.for_each_run(task, [&](const std::int64_t* at, std::int64_t n) {
                  const T* x = k.input<T>(0) + at[0] + channel * step;
                  for (std::int64_t i = 0; i < n; ++i) f(static_cast<double>(x[i * loop.step(0)]));
                });
              }
            };
            double sum = 0, squares = 0;
            walk([&](double v) { sum += v; });
            const double mean = sum / static_cast<double>(loop.size());
            walk([&](double v) { squares += (v - mean) * (v - mean); });
            const double variance = squares / static_cast<double>(loop.size());
            T* scale = reinterpret_cast<T*>(k.shared);
            set_factors<T>({scale, scale + channels}, k, in, channel, mean, variance, p.epsilon);
            const double keep = p.momentum;
            store(k, out.size() > 1 ? out[1] : TensorDesc{}, 1, channel, parameter<double>(k, in[3], 3, channel) * keep + mean * (1 - keep));
            store(k, out.size() > 2 ? out[2] : TensorDesc{}, 2, channel, parameter<double>(k, in[4], 4, channel) * keep + variance * (1 - keep));
          }};
}

template <class T>
Kernel kernel(const CpuContext& c) {
  const std::int64_t channels = c.in[1].shape[0];
  const BatchNormParams p = c.params<BatchNormParams>();
  Kernel k;
  k.implementation = "plain";
  k.shared_bytes = static_cast<std::size_t>(2 * channels) * sizeof(T);
  if (p.training) {
    k.stages.push_back(statistics_stage<T>(c, channels));
  } else {
    k.stages.push_back(
        {1, [channels, in = c.in, p](const KernelArgs& a, int) {
           T* scale = reinterpret_cast<T*>(a.shared);
           for (std::int64_t ch = 0; ch < channels; ++ch) {
             set_factors<T>({scale, scale + channels}, a, in, ch, parameter<double>(a, in[3], 3, ch), parameter<double>(a, in[4], 4, ch), p.epsilon);
           }
         }});
  }
  if (c.has_output(0)) k.stages.push_back(apply_stage<T>(c.in[0], c.out[0], channels));
  return k;
}

Kernel cpu(CpuContext& c) {
  for (std::size_t i = 1; i < 5; ++i) {
    if (c.in[i].dtype != DType::kF32 && c.in[i].dtype != DType::kF64) throw Unsupported("statistics must be float32 or float64");
  }
  return float_kernel(c, [&](auto tag) { return kernel<decltype(tag)>(c); });
}

// Statistics are given: y depends on x by one factor for each channel. Sums over x go as in training, with n = 1 and M2 = variance.
void gradient(GradientContext& g) {
  if (g.params<BatchNormParams>().training) throw Unsupported("training_mode 1 is trained as BatchMoments and BatchNormTraining");
  const ValueId x = g.input(0), scale = g.input(1), mean = g.input(3), variance = g.input(4);
  for (std::size_t i = 1; i < 5; ++i) {
    if (g.dtype(g.input(i)) != g.dtype(x)) throw Unsupported("the parameters must have x's type");
  }
  const Shape per_channel = g.shape(scale);
  const auto plus_epsilon = [&] { return g.emit("Add", {variance, g.number(static_cast<double>(g.params<BatchNormParams>().epsilon))}); };
  const auto factor = [&] { return g.emit("Div", {scale, g.emit("Sqrt", {plus_epsilon()})}); };
  if (g.wants(0)) {
    Shape along(g.shape(x).size(), 1);
    along[along.size() == 1 ? 0 : 1] = per_channel[0];
    g.set(0, g.emit("Mul", {g.dy(), g.reshape(factor(), along)}));
  }
  if (!g.wants(1) && !g.wants(2) && !g.wants(3) && !g.wants(4)) return;
  const Tensor ones = g.dtype(x) == DType::kF64 ? ones_of<double>(per_channel) : ones_of<float>(per_channel);
  Attributes rows, epsilon;
  rows.set("axis", std::int64_t{0});
  epsilon.set("epsilon", g.params<BatchNormParams>().epsilon);
  const ValueId moments = g.reshape(g.emit("Concat", {g.constant(ones), mean, variance}, rows), {3, per_channel[0]});
  const auto sums = g.emit("BatchNormGradSums", {g.dy(), x, moments, scale, g.input(2)}, epsilon, 2);
  g.set(2, sums[0]);
  g.set(1, sums[1]);
  if (g.wants(3)) g.set(3, g.emit("Neg", {g.emit("Mul", {factor(), sums[0]})}));
  if (g.wants(4)) {
    const ValueId slope = g.emit("Div", {g.emit("Mul", {scale, sums[1]}), plus_epsilon()});
    g.set(4, g.emit("Mul", {slope, g.number(-0.5)}));
  }
}

Rows rows(const RowContext& c) { return c.params<BatchNormParams>().training ? Rows::mixed() : rows_of_first(c); }

}  // namespace

std::span<const OpDef> batch_norm_ops() {
  static const OpDef ops[] = {
      {.name = "BatchNormalization",
       .min_inputs = 5,
       .max_inputs = 5,
       .max_outputs = 3,
       .infer = infer,
       .cpu = cpu,
       .rows = rows,
       .layout = LayoutRule::kAny,
       .gradient = gradient},
  };
  return ops;
}

}  // namespace tandem
