#include "runtime/ops/conv_grad_weight.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/cpu/pool_rows.h"
#include "runtime/ops/families.h"
#include "runtime/ops/float_access.h"

namespace tandem {
namespace {

constexpr std::size_t kX = 0, kDy = 1;
constexpr std::int64_t kChunk = 1 << 14;  // sums that a task adds up

void infer(InferContext& c) {
  static constexpr DType kFloats[] = {DType::kF32, DType::kBF16, DType::kF64};
  c.expect_dtype(kX, kFloats);
  c.expect_same_dtype(kX, kDy);
  c.expect_rank(kX, 3, 32);
  c.expect_rank(kDy, c.rank(kX), c.rank(kX));
  const Shape &x = c.shape(kX), &dy = c.shape(kDy);
  ConvParams p;
  p.group = parse_group(c.attributes());
  p.window = resolve_window(read_window(c.attributes(), x.size() - 2), spatial(x));
  if (x[1] % p.group != 0 || dy[1] % p.group != 0 || dy != image_shape(x[0], dy[1], p.window)) {
    throw InvalidModel(fmt::format("operand 1 {} is no output of a convolution of operand 0 {} with kernel {} and group {}", to_string(dy),
                                   to_string(x), to_string(p.window.kernel), p.group));
  }
  Shape w{dy[1], x[1] / p.group};
  w.insert(w.end(), p.window.kernel.begin(), p.window.kernel.end());
  c.set_output(0, c.dtype(kX), std::move(w));
  c.set_params(std::move(p));
}

// ---- any rank, layout and type

struct PlainJob {
  ConvParams conv;
  TensorDesc x, dy, dw;
  std::vector<std::int64_t> xs, ys, ws;  // strides
  std::int64_t taps, channels, outputs;  // of one group
};

// Steps an index of the given sizes on, row-major.
void step_on(std::span<std::int64_t> index, std::span<const std::int64_t> sizes) {
  for (std::size_t d = index.size(); d-- > 0;) {
    if (++index[d] < sizes[d]) return;
    index[d] = 0;
  }
}

// Adds what one output position gives to the sums [tap][channel].
void add_position(const PlainJob& j, const void* x, std::int64_t first, std::span<const std::int64_t> at, double dy, double* sums) {
  const Window& w = j.conv.window;
  std::int64_t memory[32] = {};
  const std::span<std::int64_t> tap(memory, w.rank());
  for (std::int64_t t = 0; t < j.taps; ++t, sums += j.channels, step_on(tap, w.kernel)) {
    std::int64_t offset = first;
    bool inside = true;
    for (std::size_t d = 0; d < w.rank(); ++d) {
      const std::int64_t cell = at[d] * w.strides[d] - w.begin[d] + tap[d] * w.dilations[d];
      inside = inside && cell >= 0 && cell < w.input[d];
      offset += cell * j.xs[d + 2];
    }
    for (std::int64_t c = 0; inside && c < j.channels; ++c) sums[c] += dy * load_float(x, j.x.dtype, offset + c * j.xs[1]);
  }
}

void run_output(const PlainJob& j, const KernelArgs& k, int m) {
  const Window& w = j.conv.window;
  auto* sums = reinterpret_cast<double*>(k.scratch);
  std::fill_n(sums, j.taps * j.channels, 0.0);
  const std::int64_t channel = m / j.outputs * j.channels;
  std::int64_t memory[32] = {};
  const std::span<std::int64_t> at(memory, w.rank());
  for (std::int64_t n = 0; n < j.x.shape[0]; ++n) {
    for (std::int64_t p = elements(w.output); p > 0; --p, step_on(at, w.output)) {
      std::int64_t y = n * j.ys[0] + m * j.ys[1];
      for (std::size_t d = 0; d < w.rank(); ++d) y += at[d] * j.ys[d + 2];
      add_position(j, k.in[kX], n * j.xs[0] + channel * j.xs[1], at, load_float(k.in[kDy], j.dy.dtype, y), sums);
    }
  }
  for (std::int64_t t = 0; t < j.taps; ++t, step_on(at, w.kernel)) {
    std::int64_t to = m * j.ws[0];
    for (std::size_t d = 0; d < w.rank(); ++d) to += at[d] * j.ws[d + 2];
    for (std::int64_t c = 0; c < j.channels; ++c) store_float(k.out[0], j.dw.dtype, to + c * j.ws[1], sums[t * j.channels + c]);
  }
}

Kernel plain_grad_weight(const CpuContext& c, const ConvParams& p) {
  PlainJob j{p, c.in[kX], c.in[kDy], c.out[0], c.in[kX].strides(), c.in[kDy].strides(), c.out[0].strides(), p.window.taps(), 0, 0};
  j.channels = j.x.shape[1] / p.group;
  j.outputs = j.dy.shape[1] / p.group;
  const auto outputs = static_cast<int>(j.dy.shape[1]);
  const auto bytes = static_cast<std::size_t>(j.taps * j.channels) * sizeof(double);
  Kernel kernel = Kernel::single("plain:conv_grad_weight", outputs, [j = std::move(j)](const KernelArgs& k, int m) { run_output(j, k, m); });
  kernel.scratch_bytes = bytes;
  return kernel;
}

Kernel cpu(CpuContext& c) {
  const auto& p = c.params<ConvParams>();
  if (auto fast = depthwise_grad_weight(c, p)) return std::move(*fast);
  if (auto fast = product_grad_weight(c, p)) return std::move(*fast);
  return plain_grad_weight(c, p);
}

}  // namespace

void GradParts::reserve(Kernel& kernel) const {
  if (parts > 1) kernel.shared_bytes = static_cast<std::size_t>(parts * size) * sizeof(float);
}

float* GradParts::sums(const KernelArgs& k, std::int64_t part) const {
  return parts == 1 ? k.output<float>(0) : reinterpret_cast<float*>(k.shared) + part * size;
}

void GradParts::add_stage(Kernel& kernel) const {
  if (parts == 1) return;
  kernel.stages.push_back({static_cast<int>((size + kChunk - 1) / kChunk), [g = *this](const KernelArgs& k, int task) {
                             const float* from[kMostGradParts];
                             const std::int64_t first = task * kChunk;
                             for (std::int64_t p = 0; p < g.parts; ++p) from[p] = g.sums(k, p) + first;
                             sum_rows(from, static_cast<std::size_t>(g.parts), static_cast<std::size_t>(std::min(kChunk, g.size - first)), true,
                                      k.output<float>(0) + first);
                           }});
}

std::span<const OpDef> conv_grad_weight_ops() {
  static const OpDef ops[] = {
      {.name = "ConvGradWeight",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer,
       .cpu = cpu,
       .data_inputs = 3,
       .layout = LayoutRule::kChannelsLast,
       .bf16 = Bf16Rule::kProduct},  // gradients of parameters stay f32
  };
  return ops;
}

}  // namespace tandem
