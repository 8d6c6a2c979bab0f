// BatchMoments' kernel (batch_norm_training.cc).
#include "runtime/ops/batch_norm_kernels.h"
#include "runtime/ops/channel_view.h"
#include "runtime/ops/shard_merge.h"

namespace tandem {
namespace {

constexpr std::int64_t kEstimateRows = 32;  // of the first block, evenly apart, whose mean is the first centre

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
  check_float(c.in[0].dtype);
  const ChannelView x(c.in[0]);
  Kernel k;
  if (!try_rows({&x}, [&](auto tag) { k = moments_by_rows<decltype(tag)>(x, c.out[0].dtype); })) k = moments_by_channel(x, c.out[0].dtype);
  return k;
}

}  // namespace tandem
