// Batch norm in training, in parts, because statistics may be those of all shards of a batch:
//   moments = BatchMoments(x)                      [3, C]: number of values, mean, sum of squared deviations of each channel
//   moments = ShardMoments(moments)                of all shards (only where statistics are synchronised)
//   y = BatchNormTraining(x, moments, gamma, beta) (x - mean) / sqrt(M2 / n + epsilon) * gamma + beta, with a ReLU behind where asked
// Backward (Ioffe and Szegedy, "Batch normalization", 2015, section 3; the moments' own dependence on x is contained):
//   dbeta, dgamma = BatchNormGradSums(dy, x, moments, gamma, beta)   sums of dy and of dy * xhat, over the shard
//   dx = BatchNormGradInput(dy, x, moments, gamma, beta, dbeta, dgamma)
//      = gamma / std * (dy - dbeta / n - xhat * dgamma / n), with the sums of all shards (ShardSum) where n counts all shards
#include <fmt/format.h>

#include "runtime/graph/gradient.h"
#include "runtime/ops/batch_norm_kernels.h"
#include "runtime/ops/families.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF64};

std::int64_t channels_of(const Shape& x) { return x.size() == 1 ? 1 : x[1]; }

void infer_moments(InferContext& c) {
  c.expect_dtype(0, kTypes);
  c.expect_rank(0, 1, 8);
  c.set_output(0, c.dtype(0), {3, channels_of(c.shape(0))});
}

// Operand i: moments; i + 1, i + 2: gamma and beta; then `sums` more of their shape. x: operand `of`.
void expect_channels(InferContext& c, std::size_t of, std::size_t i, std::size_t sums) {
  c.expect_dtype(of, kTypes);
  c.expect_rank(of, 1, 8);
  const std::int64_t channels = channels_of(c.shape(of));
  for (std::size_t k = i; k < i + 3 + sums; ++k) {
    c.expect_same_dtype(of, k);
    const Shape want = k == i ? Shape{3, channels} : Shape{channels};
    if (c.shape(k) != want) {
      throw InvalidModel(fmt::format("operand {} must have shape {} ({} channels), has {}", k, to_string(want), channels, to_string(c.shape(k))));
    }
  }
  const std::string activation = c.attributes().text("activation", "");
  if (!activation.empty() && activation != "Relu") throw InvalidModel(fmt::format("activation must be \"\" or \"Relu\", is \"{}\"", activation));
  c.set_params(BatchNormTrainingParams{c.attributes().real("epsilon", 1e-5f), !activation.empty()});
}

void infer_training(InferContext& c) {
  expect_channels(c, 0, 1, 0);
  c.set_output(0, c.dtype(0), c.shape(0));
}

void expect_same_shape(const InferContext& c) {
  if (c.shape(0) != c.shape(1)) {
    throw InvalidModel(fmt::format("dy has shape {}, x {}", to_string(c.shape(0)), to_string(c.shape(1))));
  }
}

void infer_sums(InferContext& c) {
  expect_same_shape(c);
  expect_channels(c, 1, 2, 0);
  for (const std::size_t o : {0u, 1u}) c.set_output(o, c.dtype(1), c.shape(3));
}

void infer_grad_input(InferContext& c) {
  expect_same_shape(c);
  expect_channels(c, 1, 2, 2);
  c.set_output(0, c.dtype(1), c.shape(1));
}

void gradient(GradientContext& g) {
  const ValueId x = g.input(0), moments = g.input(1), gamma = g.input(2), beta = g.input(3);
  Attributes own = g.attributes();
  own.erase("synchronised");
  auto sums = g.emit("BatchNormGradSums", {g.dy(), x, moments, gamma, beta}, own, 2);
  g.set(3, sums[0]);
  g.set(2, sums[1]);
  if (!g.wants(0)) return;
  if (g.attributes().integer("synchronised", 0)) {
    for (ValueId& sum : sums) sum = g.emit("ShardSum", {sum});
  }
  g.set(0, g.emit("BatchNormGradInput", {g.dy(), x, moments, gamma, beta, sums[0], sums[1]}, own));
}

void infer_shard_moments(InferContext& c) {
  c.expect_dtype(0, kTypes);
  if (c.rank(0) != 2 || c.shape(0)[0] != 3) throw InvalidModel(fmt::format("moments have shape [3, C], not {}", to_string(c.shape(0))));
  c.set_output(0, c.dtype(0), c.shape(0));
}

void infer_shard_sum(InferContext& c) {
  c.expect_dtype(0, kTypes);
  c.set_output(0, c.dtype(0), c.shape(0));
}

// What a shard alone gets: its own part.
Kernel alone(CpuContext& c) { return move_kernel("plain:alone", c.out, {{0, 0, StridedCopy(c.out[0].shape, side_of(c.in[0]), side_of(c.out[0]))}}); }

}  // namespace

std::span<const OpDef> batch_norm_training_ops() {
  static const OpDef ops[] = {
      {.name = "BatchMoments",
       .infer = infer_moments,
       .cpu = batch_moments_kernel,
       .layout = LayoutRule::kChannelsLast,
       .bf16 = Bf16Rule::kProduct,
       .gradient = zero_gradient},
      {.name = "ShardMoments", .infer = infer_shard_moments, .cpu = alone, .gradient = zero_gradient, .sync = Sync::kMoments, .foldable = false},
      {.name = "ShardSum", .infer = infer_shard_sum, .cpu = alone, .sync = Sync::kSum, .foldable = false},
      {.name = "BatchNormTraining",
       .min_inputs = 4,
       .max_inputs = 4,
       .infer = infer_training,
       .cpu = batch_norm_training_kernel,
       .layout = LayoutRule::kChannelsLast,
       .bf16 = Bf16Rule::kStore,
       .gradient = gradient},
      {.name = "BatchNormGradSums",
       .min_inputs = 5,
       .max_inputs = 5,
       .max_outputs = 2,
       .infer = infer_sums,
       .cpu = batch_norm_grad_sums_kernel,
       .data_inputs = 0b11,
       .layout = LayoutRule::kChannelsLast,
       .bf16 = Bf16Rule::kProduct},
      {.name = "BatchNormGradInput",
       .min_inputs = 7,
       .max_inputs = 7,
       .infer = infer_grad_input,
       .cpu = batch_norm_grad_input_kernel,
       .data_inputs = 0b11,
       .layout = LayoutRule::kChannelsLast,
       .bf16 = Bf16Rule::kStore},
  };
  return ops;
}

}  // namespace tandem
