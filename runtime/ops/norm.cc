// Normalisations of one sample: InstanceNormalization, GroupNormalization (opset 21), LayerNormalization, RMSNormalization,
// MeanVarianceNormalization. Each normalises vectors of neighbouring elements: y = (x - mean) * inv_std * scale + bias. Sums in double.
#include <algorithm>
#include <cmath>

#include "runtime/ops/along_axis.h"
#include "runtime/ops/families.h"
#include "runtime/ops/norm.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

void infer_instance(InferContext& c) {
  const NormParams p = group_norm_params(c, c.node().op == "InstanceNormalization");
  for (const std::size_t i : {1u, 2u}) {
    if (c.shape(i) != Shape{p.count})
      throw InvalidModel("operand " + std::to_string(i) + " must have one value per channel, has shape " + to_string(c.shape(i)));
    c.expect_same_dtype(0, i);
  }
  c.set_output(0, c.dtype(0), c.shape(0));
  c.set_params(p);
}

void infer_layer(InferContext& c) {
  const NormParams p = layer_norm_params(c, c.node().op == "LayerNormalization");
  const Shape& x = c.shape(0);
  const auto axis = static_cast<std::size_t>(normalise_axis(c.attributes().integer("axis", -1), c.rank(0)));
  const auto normalised = std::span(x).subspan(axis);
  for (const std::size_t i : {1u, 2u}) {
    if (!c.has_input(i)) continue;
    const Shape& s = c.shape(i);
    // Scale and bias broadcast to the normalised shape; leading ones are allowed.
    std::size_t lead = 0;
    while (lead < s.size() && s.size() - lead > normalised.size() && s[lead] == 1) ++lead;
    const auto rest = std::span(s).subspan(lead);
    if (broadcast(rest, normalised) != Shape(normalised.begin(), normalised.end())) {
      throw InvalidModel("operand " + std::to_string(i) + " of shape " + to_string(s) + " does not fit the normalised shape " +
                         to_string(normalised));
    }
    if (elements(rest) != p.size && elements(rest) != 1)
      throw Unsupported("operand " + std::to_string(i) + " must have the normalised shape or one element");
  }
  Shape statistics = x;
  for (std::size_t d = axis; d < statistics.size(); ++d) statistics[d] = 1;
  c.set_output(0, c.dtype(0), x);
  c.set_output(1, DType::kF32, statistics);
  c.set_output(2, DType::kF32, statistics);
  c.set_params(p);
}

template <class T>
Kernel kernel(const CpuContext& c) {
  const NormParams p = c.params<NormParams>();
  const std::int64_t scales = c.has_input(1) ? c.in[1].size() : 0, biases = c.has_input(2) ? c.in[2].size() : 0;
  const bool mean_out = c.has_output(1), std_out = c.has_output(2);
  const std::int64_t per_task = std::max<std::int64_t>(1, kTaskElements / std::max<std::int64_t>(1, p.size));
  const auto one = [=](const KernelArgs& k, std::int64_t v) {
    const T* x = k.input<T>(0) + v * p.size;
    T* y = k.output<T>(0) + v * p.size;
    const NormStatistics<T> s(x, p);
    const T mean = static_cast<T>(s.mean), inv_std = static_cast<T>(s.inv_std);
    const std::int64_t first = p.first(v);
    for (std::int64_t begin = 0; begin < p.size; begin += p.repeat) {
      const std::int64_t at = (first + begin / p.repeat) % p.count;
      const T scale = scales ? k.input<T>(1)[scales == 1 ? 0 : at] : T{1}, bias = biases ? k.input<T>(2)[biases == 1 ? 0 : at] : T{0};
      for (std::int64_t i = begin; i < begin + p.repeat; ++i) y[i] = (x[i] - mean) * inv_std * scale + bias;
    }
    if (mean_out) k.output<float>(1)[v] = static_cast<float>(s.mean);
    if (std_out) k.output<float>(2)[v] = static_cast<float>(s.inv_std);
  };
  return Kernel::single("plain", static_cast<int>((p.vectors + per_task - 1) / per_task), [=](const KernelArgs& k, int task) {
    const std::int64_t end = std::min(p.vectors, (task + 1) * per_task);
    for (std::int64_t v = task * per_task; v < end; ++v) one(k, v);
  });
}

Kernel cpu(CpuContext& c) {
  for (const std::size_t i : {1u, 2u}) {
    if (c.has_input(i) && c.in[i].dtype != c.in[0].dtype) throw Unsupported("scale and bias must have the type of operand 0");
  }
  return float_kernel(c, [&](auto tag) { return kernel<decltype(tag)>(c); });
}

// Axis 0 must lie outside the vectors.
Rows rows(const RowContext& c) {
  const auto& p = c.params<NormParams>();
  const Shape& x = c.input_shape(0);
  return x.empty() || x[0] == 0 || p.vectors % x[0] != 0 || p.vectors < x[0] ? Rows::mixed() : rows_of_first(c);
}

// MeanVarianceNormalization (opset 13): over any axes, epsilon 1e-9.
struct MvnParams {
  std::vector<bool> reduced;
};

void infer_mvn(InferContext& c) {
  infer_unary(c, kFloatTypes);
  MvnParams p{std::vector<bool>(c.shape(0).size(), false)};
  for (const std::int64_t a : c.attributes().integers("axes", {0, 2, 3})) p.reduced[static_cast<std::size_t>(normalise_axis(a, c.rank(0)))] = true;
  c.set_params(std::move(p));
}

template <class T>
Kernel mvn_kernel(const CpuContext& c) {
  const auto& p = c.params<MvnParams>();
  Shape kept = c.in[0].shape, reduced(kept.size(), 1);
  for (std::size_t d = 0; d < kept.size(); ++d) {
    if (p.reduced[d]) std::swap(kept[d], reduced[d]);
  }
  const StridedLoop outer(kept, {c.out[0].strides(), c.in[0].strides()}, 1), inner(reduced, {c.out[0].strides(), c.in[0].strides()});
  return Kernel::single("plain", outer.tasks(), [=](const KernelArgs& k, int task) {
    outer.for_each_run(task, [&](const std::int64_t* base, std::int64_t) {
      const auto walk = [&](auto&& f) {
        for (int t = 0; t < inner.tasks(); ++t) {
          inner.for_each_run(t, [&](const std::int64_t* at, std::int64_t n) {
            for (std::int64_t i = 0; i < n; ++i)
              f(k.input<T>(0)[base[1] + at[1] + i * inner.step(1)], k.output<T>(0)[base[0] + at[0] + i * inner.step(0)]);
          });
        }
      };
      double sum = 0, squares = 0;
      walk([&](T x, T&) { sum += static_cast<double>(x); });
      const double mean = sum / static_cast<double>(inner.size());
      walk([&](T x, T&) { squares += (static_cast<double>(x) - mean) * (static_cast<double>(x) - mean); });
      const double scale = 1 / (std::sqrt(squares / static_cast<double>(inner.size())) + 1e-9);
      walk([&](T x, T& y) { y = static_cast<T>((static_cast<double>(x) - mean) * scale); });
    });
  });
}

Kernel mvn(CpuContext& c) {
  return float_kernel(c, [&](auto tag) { return mvn_kernel<decltype(tag)>(c); });
}

Rows rows_of_mvn(const RowContext& c) {
  const auto& p = c.params<MvnParams>();
  return p.reduced.empty() || p.reduced[0] ? Rows::mixed() : rows_of_first(c);
}

}  // namespace

NormParams group_norm_params(const InferContext& c, bool one_channel_each) {
  c.expect_dtype(0, kFloatTypes);
  c.expect_rank(0, 3, 8);
  const Shape& x = c.shape(0);
  const std::int64_t groups = one_channel_each ? x[1] : c.attributes().integer("num_groups");
  if (groups < 1 || x[1] % groups != 0)
    throw InvalidModel("num_groups " + std::to_string(groups) + " does not divide the " + std::to_string(x[1]) + " channels");
  NormParams p;
  p.vectors = x[0] * groups;
  p.repeat = elements(std::span(x).subspan(2));
  p.size = x[1] / groups * p.repeat;
  p.per_vector = x[1] / groups;
  p.count = x[1];
  p.epsilon = c.attributes().real("epsilon", 1e-5f);
  return p;
}

NormParams layer_norm_params(const InferContext& c, bool centred) {
  c.expect_dtype(0, kFloatTypes);
  const Shape& x = c.shape(0);
  const auto axis = static_cast<std::size_t>(normalise_axis(c.attributes().integer("axis", -1), c.rank(0)));
  NormParams p;
  p.vectors = elements(std::span(x).first(axis));
  p.size = elements(std::span(x).subspan(axis));
  p.count = std::max<std::int64_t>(1, p.size);
  p.centred = centred;
  p.epsilon = c.attributes().real("epsilon", 1e-5f);
  return p;
}

std::span<const OpDef> norm_ops() {
  static const OpDef ops[] = {
      {.name = "InstanceNormalization",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_instance,
       .cpu = cpu,
       .rows = rows,
       .gradient = group_norm_gradient},
      {.name = "GroupNormalization",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_instance,
       .cpu = cpu,
       .rows = rows,
       .gradient = group_norm_gradient},
      {.name = "LayerNormalization",
       .min_inputs = 2,
       .max_inputs = 3,
       .max_outputs = 3,
       .infer = infer_layer,
       .cpu = cpu,
       .rows = rows,
       .gradient = layer_norm_gradient},
      {.name = "RMSNormalization", .min_inputs = 2, .max_inputs = 2, .infer = infer_layer, .cpu = cpu, .rows = rows, .gradient = layer_norm_gradient},
      {.name = "MeanVarianceNormalization",
       .infer = infer_mvn,
       .cpu = mvn,
       .rows = rows_of_mvn,
       .layout = LayoutRule::kAny,
       .gradient = mean_variance_gradient},
  };
  return ops;
}

}  // namespace tandem
