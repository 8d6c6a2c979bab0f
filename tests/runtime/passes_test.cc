#include "runtime/graph/passes.h"

#include <gtest/gtest.h>

#include "runtime/graph/infer.h"
#include "tests/support/networks.h"

namespace tandem::test {
namespace {

using Ints = std::vector<std::int64_t>;

std::vector<std::string> ops_of(const Graph& g) {
  std::vector<std::string> ops;
  for (const Node& n : g.nodes) ops.push_back(n.op);
  return ops;
}

// A weight that two convolutions share is folded for one and stays for the other: 2 * 3 * 10 + 1 and 2 * 3.
TEST(Fold, CopiesAWeightWithTwoReaders) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::kF32, {1, 1, 1, 1});
  const ValueId w = b.constant("w", f32({1, 1, 1, 1}, {3}));
  const auto one = [&](const char* name, float v) { return b.constant(name, f32({1}, {v})); };
  const ValueId first = b.node("conv1", "Conv", {x, w});
  b.output(
      b.node("bn", "BatchNormalization", {first, one("gamma", 10), one("beta", 1), one("mean", 0), one("var", 1)}, attributes({{"epsilon", 0.0f}})));
  b.output(b.node("conv2", "Conv", {x, w}));
  infer(b.graph, {{{1, 1, 1, 1}}, {}});
  EXPECT_EQ(fold_into_convolutions(b.graph), 1);
  EXPECT_EQ(ops_of(b.graph), (std::vector<std::string>{"Conv", "Conv"}));
  EXPECT_EQ(b.graph.value(b.graph.nodes[0].inputs[1]).constant.as<float>()[0], 30.0f);
  EXPECT_EQ(b.graph.value(b.graph.nodes[0].inputs[2]).constant.as<float>()[0], 1.0f);
  EXPECT_EQ(b.graph.value(b.graph.nodes[1].inputs[1]).constant.as<float>()[0], 3.0f);
}

TEST(Fold, LeavesAConvolutionThatSomebodyElseReads) {
  GraphBuilder b;
  const ValueId c = b.node("conv", "Conv", {b.input("x", DType::kF32, {1, 1, 1, 1}), b.constant("w", f32({1, 1, 1, 1}, {3}))});
  b.output(b.node("mul", "Mul", {c, b.constant("two", f32({}, {2}))}));
  b.output(c);
  infer(b.graph, {{{1, 1, 1, 1}}, {}});
  EXPECT_EQ(fold_into_convolutions(b.graph), 0);
}

TEST(Pads, GoIntoTheConvolutionAndTheEdgeKindIntoMaxPoolOnly) {
  for (const bool edge : {false, true}) {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::kF32, {1, 1, 5, 5});
    const ValueId pad = b.node("pad", "Pad", {x, b.constant("pads", i64({8}, {0, 0, 0, 1, 0, 0, 2, 1}))},
                               attributes({{"mode", std::string(edge ? "edge" : "constant")}}));
    b.output(edge ? b.node("pool", "MaxPool", {pad}, attributes({{"kernel_shape", Ints{3, 3}}}))
                  : b.node("conv", "Conv", {pad, b.constant("w", random_f32({1, 1, 3, 3}, 1))}));
    infer(b.graph, {{{1, 1, 5, 5}}, {}});
    EXPECT_EQ(fold_pads(b.graph), 1);
    ASSERT_EQ(b.graph.nodes.size(), 1u);
    EXPECT_EQ(b.graph.nodes[0].attributes.integers("pads"), (Ints{0, 1, 2, 1}));
  }
}

TEST(Transposes, APairAroundAnElementwiseNodeGoes) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::kF32, {1, 2, 3, 4});
  const ValueId t = b.node("to_last", "Transpose", {x}, attributes({{"perm", Ints{0, 2, 3, 1}}}));
  const ValueId scaled = b.node("mul", "Mul", {t, b.constant("c", f32({2}, {10, 100}))});
  b.output(b.node("to_first", "Transpose", {scaled}, attributes({{"perm", Ints{0, 3, 1, 2}}})));
  infer(b.graph, {{{1, 2, 3, 4}}, {}});
  cancel_transposes(b.graph);
  std::size_t transposes = 0;
  for (const Node& n : b.graph.nodes) transposes += n.op == "Transpose";
  EXPECT_EQ(transposes, 0u);
  const Node& mul = b.graph.nodes[0];
  EXPECT_EQ(b.graph.value(mul.inputs[1]).shape, (Shape{1, 2, 1, 1}));
}

TEST(Fuse, TheWholeBlockBecomesConvolutionsAndPools) {
  Graph g = small_xception();
  infer(g, {{{1, 3, 16, 16}}, {}});
  run_passes(g);
  EXPECT_EQ(ops_of(g), (std::vector<std::string>{"FusedConv", "FusedSeparable", "FusedSeparable", "MaxPool", "FusedConv", "FusedSeparable",
                                                 "GlobalAveragePool", "Flatten", "Gemm", "Softmax"}));
}

}  // namespace
}  // namespace tandem::test
