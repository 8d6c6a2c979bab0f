// Small networks with the shapes of the real ones, for tests of planning and running.
#pragma once

#include "tests/support/graph_builder.h"
#include "tests/support/node_test.h"

namespace tandem::test {

// Input [-1, 3, 16, 16], output [-1, 10]: stem convolution with batch norm and ReLU, a pre-activation separable block with a strided
// shortcut and max pool, a residual block, global average pool, Dense, Softmax. Channels are no multiple of any vector length.
inline Graph small_xception() {
  GraphBuilder b;
  std::uint64_t seed = 1;
  const auto weights = [&](const std::string& name, Shape shape) { return b.constant(name, random_f32(std::move(shape), seed++)); };
  const auto norm = [&](const std::string& name, ValueId x, std::int64_t c) {
    Tensor variance = random_f32({c}, seed++);
    for (float& v : variance.as_mutable<float>()) v = v * v + 0.5f;
    return b.node(
        name, "BatchNormalization",
        {x, weights(name + "/gamma", {c}), weights(name + "/beta", {c}), weights(name + "/mean", {c}), b.constant(name + "/variance", variance)},
        attributes({{"epsilon", 1e-3f}}));
  };
  using Ints = std::vector<std::int64_t>;
  const auto conv = [&](const std::string& name, ValueId x, Shape w, std::int64_t stride, std::int64_t pad, std::int64_t group = 1) {
    return b.node(name, "Conv", {x, weights(name + "/kernel", std::move(w))},
                  attributes({{"strides", Ints{stride, stride}}, {"pads", Ints{pad, pad, pad, pad}}, {"group", group}}));
  };
  const auto separable = [&](const std::string& name, ValueId x, std::int64_t in, std::int64_t out) {
    return norm(name + "_bn", conv(name + "_pw", conv(name + "_dw", x, {in, 1, 3, 3}, 1, 1, in), {out, in, 1, 1}, 1, 0), out);
  };
  const ValueId image = b.input("image", DType::kF32, {-1, 3, 16, 16});
  const ValueId stem = b.node("stem_act", "Relu", {norm("stem_bn", conv("stem", image, {10, 3, 3, 3}, 1, 1), 10)});
  const ValueId main = separable("sep2", b.node("act2", "Relu", {separable("sep1", b.node("act1", "Relu", {stem}), 10, 22)}), 22, 22);
  const ValueId pool =
      b.node("pool", "MaxPool", {main}, attributes({{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}));
  const ValueId shortcut = norm("short_bn", conv("short", stem, {22, 10, 1, 1}, 2, 0), 22);
  const ValueId block = b.node("add1", "Add", {pool, shortcut});
  const ValueId residual = b.node("add2", "Add", {separable("sep3", b.node("act3", "Relu", {block}), 22, 22), block});
  const ValueId flat = b.node("flatten", "Flatten", {b.node("gap", "GlobalAveragePool", {residual})});
  const ValueId dense =
      b.node("dense", "Gemm", {flat, weights("dense/kernel", {10, 22}), weights("dense/bias", {10})}, attributes({{"transB", std::int64_t{1}}}));
  b.output(b.node("probabilities", "Softmax", {dense}));
  return b.graph;
}

}  // namespace tandem::test
