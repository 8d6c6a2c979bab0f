#include "runtime/ops/batch_norm_kernels.h"

#include <cmath>

#include "runtime/cpu/map.h"
#include "runtime/ops/channel_view.h"

namespace tandem {
namespace {

constexpr std::size_t kFactors = 6;  // arrays of Factors

// ---- what each channel is multiplied by

// Operands: moments, gamma, beta, and for the gradient of x the sums (dy, dy * xhat) from `first` on.
struct FactorSource {
  std::size_t first = 0;
  bool sums = false;
  DType type = DType::kF32;
  std::int64_t channels = 0;
  BatchNormTrainingParams params;

  template <class F>
  Stage stage() const {
    return {1, [self = *this](const KernelArgs& a, int) { self.write<F>(a); }};
  }
  template <class F>
  std::size_t bytes() const {
    return static_cast<std::size_t>(channels) * kFactors * sizeof(F);
  }

 private:
  double operand(const KernelArgs& a, std::size_t i, std::int64_t at) const { return get(a.in[first + i], type, at); }

  template <class F>
  void write(const KernelArgs& a) const;
};

template <class F>
struct Factors {
  const F *mean, *scale, *shift, *inv_std, *offset, *slope;
  Factors(const void* shared, std::int64_t channels) {
    const F* p = static_cast<const F*>(shared);
    for (const F** array : {&mean, &scale, &shift, &inv_std, &offset, &slope}) {
      *array = p;
      p += channels;
    }
  }
};

template <class F>
void FactorSource::write(const KernelArgs& a) const {
  F* to = reinterpret_cast<F*>(a.shared);
  for (std::int64_t c = 0; c < channels; ++c) {
    const double n = operand(a, 0, c), mean = operand(a, 0, channels + c);
    const double variance = n > 0 ? operand(a, 0, 2 * channels + c) / n : 0;
    const double inv_std = 1 / std::sqrt(variance + static_cast<double>(params.epsilon));
    const double scale = operand(a, 1, c) * inv_std;
    const double share = sums && n > 0 ? scale / n : 0;
    const double values[kFactors] = {
        mean, scale, operand(a, 2, c), inv_std, sums ? share * operand(a, 3, c) : 0, sums ? share * inv_std * operand(a, 4, c) : 0};
    for (std::size_t f = 0; f < kFactors; ++f) to[static_cast<std::int64_t>(f) * channels + c] = static_cast<F>(values[f]);
  }
}

FactorSource factors_of(const CpuContext& c, std::size_t first, bool sums) {
  return {first, sums, c.in[first].dtype, c.in[first].shape[1], c.params<BatchNormTrainingParams>()};
}

ChannelNorm norm_of(const Factors<float>& f, const FactorSource& s) { return {s.channels, f.mean, f.scale, f.shift, s.params.relu}; }

// y = n(x), or dx, for the rows of a task.
template <class Body>
Kernel by_rows(const FactorSource& source, const ChannelView& out, const TensorDesc& desc, Body body) {
  const RowCut cut(out.rows(), out.c, kTaskElements, 4);
  Kernel k;
  k.implementation = "hwy:rows";
  k.shared_bytes = source.bytes<float>();
  k.stages.push_back(source.stage<float>());
  k.stages.push_back({cut.tasks, [=](const KernelArgs& a, int task) {
                        body(a, Factors<float>(a.shared, source.channels), cut.begin(task), cut.end(task) - cut.begin(task));
                        zero_gaps(desc, a.out[0], cut.begin(task) * out.c, cut.end(task) * out.c);
                      }});
  return k;
}

// The same element by element: body(args, factors, n, channel, s).
template <class Body>
Kernel by_elements(const FactorSource& source, const ChannelView& out, const TensorDesc& desc, Body body) {
  Kernel k;
  k.implementation = "plain";
  k.shared_bytes = source.bytes<double>();
  k.stages.push_back(source.stage<double>());
  k.stages.push_back({static_cast<int>(std::max<std::int64_t>(1, out.c)), [=](const KernelArgs& a, int c) {
                        if (c == 0) zero_gaps(desc, a.out[0], 0, elements(desc.shape));
                        if (c >= out.c) return;
                        const Factors<double> f(a.shared, source.channels);
                        each_of_channel(out, [&](std::int64_t n, std::int64_t s) { body(a, f, n, c, s); });
                      }});
  return k;
}

// dy where the activation lets it pass.
double passed(const FactorSource& source, const Factors<double>& f, double dy, double x, std::int64_t c) {
  return !source.params.relu || (x - f.mean[c]) * f.scale[c] + f.shift[c] > 0 ? dy : 0;
}

// ---- sums of the backward pass

template <class T>
Kernel sums_by_rows(const FactorSource& source, const ChannelView& dy, const ChannelView& x, DType out) {
  const std::int64_t channels = x.c;
  const RowCut cut(x.rows(), channels, kSumElements, kBlockRows);
  const std::size_t parts_at = (source.bytes<float>() + 63) / 64 * 64;
  Kernel k;
  k.implementation = "hwy:rows";
  k.scratch_bytes = static_cast<std::size_t>(2 * channels) * sizeof(float);
  k.shared_bytes = parts_at + static_cast<std::size_t>(2 * channels * cut.tasks) * sizeof(double);
  k.stages.push_back(source.stage<float>());
  k.stages.push_back({cut.tasks, [=](const KernelArgs& a, int task) {
                        const ChannelNorm norm = norm_of(Factors<float>(a.shared, channels), source);
                        double* parts = reinterpret_cast<double*>(a.shared + parts_at) + 2 * channels * task;
                        std::fill_n(parts, 2 * channels, 0.0);
                        float* block = reinterpret_cast<float*>(a.scratch);
                        for (std::int64_t row = cut.begin(task); row < cut.end(task); row += kBlockRows) {
                          std::fill_n(block, 2 * channels, 0.0f);
                          norm_gradient_sums(norm, rows_at<T>(a.in[0], dy, row), rows_at<T>(a.in[1], x, row),
                                             std::min(kBlockRows, cut.end(task) - row), block, block + channels);
                          for (std::int64_t i = 0; i < 2 * channels; ++i) parts[i] += static_cast<double>(block[i]);
                        }
                      }});
  k.stages.push_back({1, [=](const KernelArgs& a, int) {
                        const Factors<float> f(a.shared, channels);
                        const double* parts = reinterpret_cast<const double*>(a.shared + parts_at);
                        for (std::int64_t c = 0; c < channels; ++c) {
                          double sum = 0, product = 0;
                          for (int t = 0; t < cut.tasks; ++t) {
                            sum += parts[2 * channels * t + c];
                            product += parts[2 * channels * t + channels + c];
                          }
                          put(a.out[0], out, c, sum);
                          put(a.out[1], out, c, product * static_cast<double>(f.inv_std[c]));
                        }
                      }});
  return k;
}

Kernel sums_by_channel(const FactorSource& source, const ChannelView& dy, const ChannelView& x, DType out) {
  Kernel k;
  k.implementation = "plain";
  k.shared_bytes = source.bytes<double>();
  k.stages.push_back(source.stage<double>());
  k.stages.push_back({static_cast<int>(std::max<std::int64_t>(1, x.c)), [=](const KernelArgs& a, int c) {
                        if (c >= x.c) return;
                        const Factors<double> f(a.shared, source.channels);
                        double sum = 0, product = 0;
                        each_of_channel(x, [&](std::int64_t n, std::int64_t s) {
                          const double value = get(a.in[1], x.dtype, x.at(n, c, s));
                          const double g = passed(source, f, get(a.in[0], dy.dtype, dy.at(n, c, s)), value, c);
                          sum += g;
                          product += g * (value - f.mean[c]);
                        });
                        put(a.out[0], out, c, sum);
                        put(a.out[1], out, c, product * f.inv_std[c]);
                      }});
  return k;
}

}  // namespace

Kernel batch_norm_training_kernel(CpuContext& c) {
  check_float(c.in[0].dtype);
  const ChannelView x(c.in[0]), y(c.out[0]);
  const FactorSource source = factors_of(c, 1, false);
  Kernel k;
  const bool by_row = try_rows({&x, &y}, [&](auto tag) {
    using T = decltype(tag);
    k = by_rows(source, y, c.out[0], [=](const KernelArgs& a, const Factors<float>& f, std::int64_t row, std::int64_t rows) {
      normalise_rows(norm_of(f, source), rows_at<T>(a.in[0], x, row), rows_at<T>(a.out[0], y, row), rows);
    });
  });
  if (!by_row) {
    k = by_elements(source, y, c.out[0], [=](const KernelArgs& a, const Factors<double>& f, std::int64_t n, std::int64_t ch, std::int64_t s) {
      const double v = (get(a.in[0], x.dtype, x.at(n, ch, s)) - f.mean[ch]) * f.scale[ch] + f.shift[ch];
      put(a.out[0], y.dtype, y.at(n, ch, s), source.params.relu && v < 0 ? 0 : v);
    });
  }
  k.in_place = 1;
  return k;
}

Kernel batch_norm_grad_sums_kernel(CpuContext& c) {
  check_float(c.in[0].dtype);
  const ChannelView dy(c.in[0]), x(c.in[1]);
  const FactorSource source = factors_of(c, 2, false);
  Kernel k;
  if (!try_rows({&dy, &x}, [&](auto tag) { k = sums_by_rows<decltype(tag)>(source, dy, x, source.type); }))
    k = sums_by_channel(source, dy, x, source.type);
  return k;
}

Kernel batch_norm_grad_input_kernel(CpuContext& c) {
  check_float(c.in[0].dtype);
  const ChannelView dy(c.in[0]), x(c.in[1]), dx(c.out[0]);
  const FactorSource source = factors_of(c, 2, true);
  Kernel k;
  const bool by_row = try_rows({&dy, &x, &dx}, [&](auto tag) {
    using T = decltype(tag);
    k = by_rows(source, dx, c.out[0], [=](const KernelArgs& a, const Factors<float>& f, std::int64_t row, std::int64_t rows) {
      norm_gradient_rows(norm_of(f, source), {f.offset, f.slope}, rows_at<T>(a.in[0], dy, row), rows_at<T>(a.in[1], x, row),
                         rows_at<T>(a.out[0], dx, row), rows);
    });
  });
  if (!by_row) {
    k = by_elements(source, dx, c.out[0], [=](const KernelArgs& a, const Factors<double>& f, std::int64_t n, std::int64_t ch, std::int64_t s) {
      const double value = get(a.in[1], x.dtype, x.at(n, ch, s));
      const double g = passed(source, f, get(a.in[0], dy.dtype, dy.at(n, ch, s)), value, ch);
      put(a.out[0], dx.dtype, dx.at(n, ch, s), f.scale[ch] * g - f.offset[ch] - f.slope[ch] * (value - f.mean[ch]));
    });
  }
  k.in_place = 0b11;
  return k;
}

}  // namespace tandem
