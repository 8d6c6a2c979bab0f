// Gradients of the normalisations of one sample. For a vector with g = dy * scale and xhat = (x - mean) * inv_std:
// dx = inv_std * (g - average of g - xhat * average of g * xhat), without the first average where the mean is not taken out.
#include <algorithm>

#include "runtime/graph/gradient.h"
#include "runtime/ops/along_axis.h"
#include "runtime/ops/families.h"
#include "runtime/ops/norm.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

// Operands x, scale, dy.
void infer_grad(InferContext& c) {
  const std::string& op = c.node().op;
  const bool channels = op == "InstanceNormalizationGrad" || op == "GroupNormalizationGrad";
  const NormParams p = channels ? group_norm_params(c, op == "InstanceNormalizationGrad") : layer_norm_params(c, op == "LayerNormalizationGrad");
  c.expect_same_dtype(0, 1);
  c.expect_same_dtype(0, 2);
  if (c.shape(2) != c.shape(0)) throw InvalidModel("dy has shape " + to_string(c.shape(2)) + ", x " + to_string(c.shape(0)));
  const std::int64_t scales = elements(c.shape(1));
  if (scales != p.count && scales != 1) {
    throw InvalidModel("operand 1 must have " + std::to_string(p.count) + " elements or one, has shape " + to_string(c.shape(1)));
  }
  c.set_output(0, c.dtype(0), c.shape(0));
  c.set_params(p);
}

template <class T>
void one_vector(const NormParams& p, std::int64_t v, const T* x, const T* scales, std::int64_t scale_count, const T* dy, T* dx) {
  const NormStatistics<T> s(x, p);
  const auto each = [&](auto&& f) {
    for (std::int64_t begin = 0; begin < p.size; begin += p.repeat) {
      const std::int64_t at = (p.first(v) + begin / p.repeat) % p.count;
      const auto scale = static_cast<double>(scales[scale_count == 1 ? 0 : at]);
      for (std::int64_t i = begin; i < begin + p.repeat; ++i)
        f(i, static_cast<double>(dy[i]) * scale, (static_cast<double>(x[i]) - s.mean) * s.inv_std);
    }
  };
  double sum = 0, product = 0;
  each([&](std::int64_t, double g, double xhat) {
    sum += g;
    product += g * xhat;
  });
  const double mean = p.centred ? sum / static_cast<double>(p.size) : 0, slope = product / static_cast<double>(p.size);
  each([&](std::int64_t i, double g, double xhat) { dx[i] = static_cast<T>(s.inv_std * (g - mean - xhat * slope)); });
}

Kernel grad(CpuContext& c) {
  return float_kernel(c, [&](auto tag) {
    using T = decltype(tag);
    const NormParams p = c.params<NormParams>();
    const std::int64_t scales = c.in[1].size(), per_task = std::max<std::int64_t>(1, kTaskElements / std::max<std::int64_t>(1, p.size));
    return Kernel::single(
        "plain", static_cast<int>(std::max<std::int64_t>(1, (p.vectors + per_task - 1) / per_task)), [=](const KernelArgs& k, int task) {
          for (std::int64_t v = task * per_task; v < std::min(p.vectors, (task + 1) * per_task); ++v) {
            one_vector(p, v, k.input<T>(0) + v * p.size, k.input<T>(1), scales, k.input<T>(2) + v * p.size, k.output<T>(0) + v * p.size);
          }
        });
  });
}

Tensor filled(DType type, const Shape& shape, double value) {
  Tensor t(type, shape);
  if (type == DType::kF64)
    std::fill_n(t.as_mutable<double>().data(), t.size(), value);
  else
    std::fill_n(t.as_mutable<float>().data(), t.size(), static_cast<float>(value));
  return t;
}

// dy * xhat, element by element.
ValueId scale_products(GradientContext& g, bool bias) {
  const DType type = g.dtype(g.input(1));
  std::vector<ValueId> operands{g.input(0), g.constant(filled(type, g.shape(g.input(1)), 1))};
  if (bias) operands.push_back(g.constant(filled(type, g.shape(g.input(1)), 0)));
  return g.emit("Mul", {g.dy(), g.emit(g.node().op, operands, g.attributes())});
}

void need_first_output(const GradientContext& g) {
  if (g.dy(1) != kNoValue || g.dy(2) != kNoValue || g.dy() == kNoValue) throw Unsupported("the statistics that it gives cannot be trained through");
}

}  // namespace

void group_norm_gradient(GradientContext& g) {
  g.set(0, g.emit(g.node().op + "Grad", {g.input(0), g.input(1), g.dy()}, g.attributes()));
  Shape channels = g.shape(g.input(0));
  channels.erase(channels.begin());
  std::fill(channels.begin() + 1, channels.end(), 1);
  const auto set = [&](std::size_t i, ValueId elements) { g.set(i, g.reshape(g.sum_to(elements, channels), g.shape(g.input(i)))); };
  if (g.wants(1)) set(1, scale_products(g, true));
  if (g.wants(2)) set(2, g.dy());
}

void layer_norm_gradient(GradientContext& g) {
  need_first_output(g);
  g.set(0, g.emit(g.node().op + "Grad", {g.input(0), g.input(1), g.dy()}, g.attributes()));
  const auto set = [&](std::size_t i, ValueId elements) {
    Shape to = g.shape(g.input(i));  // it may have more leading ones than x has dimensions
    while (to.size() > g.shape(g.input(0)).size()) to.erase(to.begin());
    g.set(i, g.reshape(g.sum_to(elements, to), g.shape(g.input(i))));
  };
  if (g.wants(1)) set(1, scale_products(g, false));
  if (g.wants(2)) set(2, g.dy());
}

// y = (x - mean) / (std + 1e-9), 1e-9 against std left out of std's own derivative.
void mean_variance_gradient(GradientContext& g) {
  const ValueId x = g.input(0);
  std::vector<std::int64_t> axes = g.attributes().integers("axes", {0, 2, 3});
  const auto mean = [&](ValueId v) { return g.emit("ReduceMean", {v, g.ints(axes)}); };  // keeps dimensions
  const ValueId centred = g.emit("Sub", {x, mean(x)});
  const ValueId deviation = g.emit("Add", {g.emit("Sqrt", {mean(g.emit("Mul", {centred, centred}))}), g.number(1e-9)});
  const ValueId y = g.output();
  const ValueId along = g.emit("Mul", {y, mean(g.emit("Mul", {g.dy(), y}))});
  g.set(0, g.emit("Div", {g.emit("Sub", {g.emit("Sub", {g.dy(), mean(g.dy())}), along}), deviation}));
}

std::span<const OpDef> norm_gradient_ops() {
  static const OpDef ops[] = {
      {.name = "InstanceNormalizationGrad", .min_inputs = 3, .max_inputs = 3, .infer = infer_grad, .cpu = grad, .data_inputs = 0b101},
      {.name = "GroupNormalizationGrad", .min_inputs = 3, .max_inputs = 3, .infer = infer_grad, .cpu = grad, .data_inputs = 0b101},
      {.name = "LayerNormalizationGrad", .min_inputs = 3, .max_inputs = 3, .infer = infer_grad, .cpu = grad, .data_inputs = 0b101},
      {.name = "RMSNormalizationGrad", .min_inputs = 3, .max_inputs = 3, .infer = infer_grad, .cpu = grad, .data_inputs = 0b101},
  };
  return ops;
}

}  // namespace tandem
