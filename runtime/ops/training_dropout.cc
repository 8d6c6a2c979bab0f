// Dropout in training: y = x * mask / (1 - rate), where an element is dropped with probability `rate`. The mask depends on the random
// operand (int64: seed, step, index of the first sample in the global batch), on the attribute `ordinal`, which tells the dropouts of a
// graph apart, on the sample, and on the element's place in the sample in logical order: not on layout, shard or device. The gradient is the same
// operator on dy.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/philox.h"
#include "runtime/cpu/map.h"
#include "runtime/graph/gradient.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

constexpr std::int64_t kOrdinals = std::int64_t{1} << 31;  // of nodes (philox.h)

struct DropoutParams {
  std::uint32_t ordinal = 0, dropped = 0;  // dropped: words of 24 bits below it
  float scale = 1;
};

void infer(InferContext& c) {
  static constexpr DType kTypes[] = {DType::kF32, DType::kF64}, kIndex[] = {DType::kI64};
  c.expect_dtype(0, kTypes);
  c.expect_rank(0, 1, 8);
  c.expect_dtype(1, kIndex);
  if (c.shape(1) != Shape{3}) throw InvalidModel(fmt::format("random must be [seed, step, first sample], has shape {}", to_string(c.shape(1))));
  const float rate = c.attributes().real("rate");
  if (!(rate >= 0 && rate < 1)) throw InvalidModel(fmt::format("attribute rate must be in [0, 1), is {}", rate));
  const std::int64_t ordinal = c.attributes().integer("ordinal");
  if (ordinal < 0 || ordinal >= kOrdinals) throw InvalidModel(fmt::format("attribute ordinal must be in [0, {}), is {}", kOrdinals, ordinal));
  c.set_output(0, c.dtype(0), c.shape(0));
  c.set_params(DropoutParams{static_cast<std::uint32_t>(ordinal), static_cast<std::uint32_t>(std::ceil(static_cast<double>(rate) * 0x1p24)),
                             static_cast<float>(1 / (1 - static_cast<double>(rate)))});
}

template <class T, class R>
void copy_kept(const void* x, std::int64_t from, void* y, std::int64_t to, bool kept, float scale) {
  const T v = static_cast<const T*>(x)[from];
  R& r = static_cast<R*>(y)[to];
  if constexpr (std::is_same_v<T, double>)
    r = kept ? v * static_cast<double>(scale) : 0;
  else
    r = R(kept ? static_cast<float>(v) * scale : 0.0f);
}

// Elements of a sample in logical order: d and s with [sample, d, s] (s: what lies behind the channels).
struct SampleView {
  std::int64_t samples, channels = 1, rest = 1, sample_step, channel_step = 0, rest_step = 0;
  explicit SampleView(const TensorDesc& d) : samples(d.shape[0]), sample_step(d.strides()[0]) {
    const auto strides = d.strides();
    if (d.rank() > 1) {
      channels = d.shape[1];
      channel_step = strides[1];
    }
    if (d.rank() > 2) {
      rest = elements(std::span(d.shape).subspan(2));
      rest_step = strides.back();
    }
  }
  std::int64_t per_sample() const { return channels * rest; }
  std::int64_t at(std::int64_t sample, std::int64_t element) const {
    return sample * sample_step + element / rest * channel_step + element % rest * rest_step;
  }
};

template <class T, class R>
Kernel kernel(const CpuContext& c) {
  const DropoutParams p = c.params<DropoutParams>();
  const SampleView x(c.in[0]), y(c.out[0]);
  const std::int64_t per_task = kTaskElements / 4, tasks_per_sample = std::max<std::int64_t>(1, (x.per_sample() + per_task - 1) / per_task);
  Kernel k = Kernel::single(
      "plain", static_cast<int>(std::max<std::int64_t>(1, x.samples * tasks_per_sample)), [=, desc = c.out[0]](const KernelArgs& a, int task) {
        if (task == 0) zero_gaps(desc, a.out[0], 0, elements(desc.shape));
        const std::int64_t sample = task / tasks_per_sample, begin = task % tasks_per_sample * per_task;
        if (sample >= x.samples) return;
        const std::int64_t* random = a.input<std::int64_t>(1);
        const auto index = static_cast<std::uint32_t>(random[2] + sample);
        for (std::int64_t e = begin; e < std::min(x.per_sample(), begin + per_task); e += 4) {
          const PhiloxBlock words = philox(static_cast<std::uint64_t>(random[0]),
                                           {p.ordinal, static_cast<std::uint32_t>(random[1]), index, static_cast<std::uint32_t>(e / 4)});
          for (std::int64_t i = 0; i < std::min<std::int64_t>(4, x.per_sample() - e); ++i) {
            copy_kept<T, R>(a.in[0], x.at(sample, e + i), a.out[0], y.at(sample, e + i), words[static_cast<std::size_t>(i)] >> 8 >= p.dropped,
                            p.scale);
          }
        }
      });
  k.in_place = 1;
  return k;
}

Kernel cpu(CpuContext& c) {
  const DType from = c.in[0].dtype, to = c.out[0].dtype;
  if (from == DType::kF64) return kernel<double, double>(c);
  if (from == DType::kBF16) return to == DType::kBF16 ? kernel<BFloat16, BFloat16>(c) : kernel<BFloat16, float>(c);
  return to == DType::kBF16 ? kernel<float, BFloat16>(c) : kernel<float, float>(c);
}

void gradient(GradientContext& g) { g.set(0, g.emit("TrainingDropout", {g.dy(), g.input(1)}, g.attributes())); }

}  // namespace

std::span<const OpDef> training_dropout_ops() {
  static const OpDef ops[] = {
      {.name = "TrainingDropout",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer,
       .cpu = cpu,
       .layout = LayoutRule::kAny,
       .bf16 = Bf16Rule::kStore,
       .gradient = gradient,
       .foldable = false},
  };
  return ops;
}

}  // namespace tandem
