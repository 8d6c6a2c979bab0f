#include "runtime/ops/batch_norm_kernels.h"

#include <algorithm>
#include <cmath>

#include "runtime/cpu/batch_norm_rows.h"
#include "runtime/cpu/map.h"
#include "runtime/ops/shard_merge.h"

namespace tandem {
namespace {

constexpr std::int64_t kBlockRows = 256;        // what float sums hold well
constexpr std::int64_t kSumElements = 1 << 18;  // of a task that sums
constexpr std::int64_t kEstimateRows = 32;      // of the first block, evenly apart, whose mean is the first centre
constexpr std::size_t kFactors = 6;             // arrays of Factors

double get(const void* data, DType type, std::int64_t i) {
  if (type == DType::kF64) return static_cast<const double*>(data)[i];
  if (type == DType::kBF16) return static_cast<double>(static_cast<float>(static_cast<const BFloat16*>(data)[i]));
  return static_cast<double>(static_cast<const float*>(data)[i]);
}

void put(void* data, DType type, std::int64_t i, double value) {
  if (!data) return;
  if (type == DType::kF64)
    static_cast<double*>(data)[i] = value;
  else if (type == DType::kBF16)
    static_cast<BFloat16*>(data)[i] = BFloat16(static_cast<float>(value));
  else
    static_cast<float*>(data)[i] = static_cast<float>(value);
}

// f(place) for every element of a channel, n by n.
template <class F>
void each_of_channel(const ChannelView& v, F&& f) {
  for (std::int64_t n = 0; n < v.n; ++n) {
    for (std::int64_t s = 0; s < v.s; ++s) f(n, s);
  }
}

void check_type(DType t) {
  if (t != DType::kF32 && t != DType::kBF16 && t != DType::kF64)
    throw Unsupported(std::string("needs float operands, has ") + std::string(name_of(t)));
}

// How sums over rows are cut.
struct RowCut {
  std::int64_t rows = 0, per_task = 1;
  int tasks = 1;
  RowCut() = default;
  RowCut(std::int64_t all_rows, std::int64_t channels, std::int64_t elements, std::int64_t unit) : rows(all_rows) {
    per_task = std::max<std::int64_t>(1, elements / std::max<std::int64_t>(1, channels * unit)) * unit;
    tasks = static_cast<int>(std::max<std::int64_t>(1, (rows + per_task - 1) / per_task));
  }
  std::int64_t begin(int task) const { return task * per_task; }
  std::int64_t end(int task) const { return std::min(rows, begin(task) + per_task); }
};

template <class T>
RowsOf<const T> rows_at(const void* data, const ChannelView& v, std::int64_t row) {
  return {static_cast<const T*>(data) + row * v.pitch(), v.pitch()};
}
template <class T>
RowsOf<T> rows_at(void* data, const ChannelView& v, std::int64_t row) {
  return {static_cast<T*>(data) + row * v.pitch(), v.pitch()};
}

// Runs f with the element type when all views can go by rows.
template <class F>
bool try_rows(std::initializer_list<const ChannelView*> views, F&& f) {
  const DType type = (*views.begin())->dtype;
  for (const ChannelView* v : views) {
    if (!v->by_rows() || v->dtype != type) return false;
  }
  if (type == DType::kF32) f(float{});
  if (type == DType::kBF16) f(BFloat16{});
  return type == DType::kF32 || type == DType::kBF16;
}

// ---- moments

// One task's rows: mean and m2, each [channels]. Each block is summed around the mean of what came before, so that squares do not cancel:
// where block means differ much, the sum of squared deviations is as large.
template <class T>
void moments_of_rows(RowsOf<const T> x, std::int64_t rows, std::int64_t channels, float* scratch, double* mean, double* m2) {
  float *centre = scratch, *sum = centre + channels, *squares = sum + channels;
  std::fill_n(centre, 3 * channels, 0.0f);
  const std::int64_t apart = std::max<std::int64_t>(1, std::min(rows, kBlockRows) / kEstimateRows), first = std::min(rows, kBlockRows) / apart;
  moment_rows(RowsOf<const T>{x.data, apart * x.pitch}, first, channels, centre, sum, squares);
  for (std::int64_t c = 0; c < channels; ++c) {
    mean[c] = first == 0 ? 0 : static_cast<double>(sum[c]) / static_cast<double>(first);
    m2[c] = 0;
  }
  for (std::int64_t done = 0; done < rows; done += kBlockRows) {
    const std::int64_t block = std::min(kBlockRows, rows - done);
    for (std::int64_t c = 0; c < channels; ++c) centre[c] = static_cast<float>(mean[c]);
    std::fill_n(sum, 2 * channels, 0.0f);
    moment_rows(RowsOf<const T>{x.data + done * x.pitch, x.pitch}, block, channels, centre, sum, squares);
    const double share = 1 / static_cast<double>(block), weight = static_cast<double>(block) / static_cast<double>(done + block);
    const double both = static_cast<double>(done) * weight;
    for (std::int64_t c = 0; c < channels; ++c) {
      const double s = sum[c], shift = s * share, delta = static_cast<double>(centre[c]) + shift - mean[c];
      m2[c] += std::max(0.0, static_cast<double>(squares[c]) - s * shift) + delta * delta * both;
      mean[c] += delta * weight;
    }
  }
}

template <class T>
Kernel moments_by_rows(const ChannelView& x, DType out) {
  const std::int64_t channels = x.c;
  const RowCut cut(x.rows(), channels, kSumElements, kBlockRows);
  Kernel k;
  k.implementation = "hwy:rows";
  k.scratch_bytes = static_cast<std::size_t>(3 * channels) * sizeof(float);
  k.shared_bytes = static_cast<std::size_t>(2 * channels * cut.tasks) * sizeof(double);
  k.stages.push_back({cut.tasks, [=](const KernelArgs& a, int task) {
                        double* mean = reinterpret_cast<double*>(a.shared) + 2 * channels * task;
                        moments_of_rows(rows_at<T>(a.in[0], x, cut.begin(task)), cut.end(task) - cut.begin(task), channels,
                                        reinterpret_cast<float*>(a.scratch), mean, mean + channels);
                      }});
  k.stages.push_back({1, [=](const KernelArgs& a, int) {
                        const double* parts = reinterpret_cast<const double*>(a.shared);
                        for (std::int64_t c = 0; c < channels; ++c) {
                          Moments all;
                          for (int t = 0; t < cut.tasks; ++t) {
                            const double* part = parts + 2 * channels * t + c;
                            all = merged(all, {static_cast<double>(cut.end(t) - cut.begin(t)), part[0], part[channels]});
                          }
                          put(a.out[0], out, c, all.n);
                          put(a.out[0], out, channels + c, all.mean);
                          put(a.out[0], out, 2 * channels + c, all.m2);
                        }
                      }});
  return k;
}

Kernel moments_by_channel(const ChannelView& x, DType out) {
  return Kernel::single("plain", static_cast<int>(std::max<std::int64_t>(1, x.c)), [=](const KernelArgs& a, int c) {
    if (c >= x.c) return;
    Moments all{static_cast<double>(x.rows()), 0, 0};
    each_of_channel(x, [&](std::int64_t n, std::int64_t s) { all.mean += get(a.in[0], x.dtype, x.at(n, c, s)); });
    all.mean /= std::max(1.0, all.n);
    each_of_channel(x, [&](std::int64_t n, std::int64_t s) {
      const double d = get(a.in[0], x.dtype, x.at(n, c, s)) - all.mean;
      all.m2 += d * d;
    });
    put(a.out[0], out, c, all.n);
    put(a.out[0], out, x.c + c, all.mean);
    put(a.out[0], out, 2 * x.c + c, all.m2);
  });
}

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

ChannelView::ChannelView(const TensorDesc& d) : dtype(d.dtype), n(d.shape[0]) {
  const auto strides = d.strides();
  n_step = strides[0];
  if (d.rank() == 1) return;
  c = d.shape[1];
  c_step = strides[1];
  if (d.rank() == 2) return;
  s = elements(std::span(d.shape).subspan(2));
  s_step = strides.back();
}

Kernel batch_moments_kernel(CpuContext& c) {
  check_type(c.in[0].dtype);
  const ChannelView x(c.in[0]);
  Kernel k;
  if (!try_rows({&x}, [&](auto tag) { k = moments_by_rows<decltype(tag)>(x, c.out[0].dtype); })) k = moments_by_channel(x, c.out[0].dtype);
  return k;
}

Kernel batch_norm_training_kernel(CpuContext& c) {
  check_type(c.in[0].dtype);
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
  check_type(c.in[0].dtype);
  const ChannelView dy(c.in[0]), x(c.in[1]);
  const FactorSource source = factors_of(c, 2, false);
  Kernel k;
  if (!try_rows({&dy, &x}, [&](auto tag) { k = sums_by_rows<decltype(tag)>(source, dy, x, source.type); }))
    k = sums_by_channel(source, dy, x, source.type);
  return k;
}

Kernel batch_norm_grad_input_kernel(CpuContext& c) {
  check_type(c.in[0].dtype);
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
