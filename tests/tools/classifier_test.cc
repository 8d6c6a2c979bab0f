// What a network's end means for its scores: a softmax is neither forgotten nor computed twice.
#include "tools/classifier.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>

#include "runtime/base/error.h"
#include "tests/support/graph_builder.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

using cli::Classifier;
using cli::OutputType;

// The image's three pixels are the logits; `end` puts what follows on them.
Graph network(const std::function<ValueId(GraphBuilder&, ValueId)>& end) {
  GraphBuilder b;
  const ValueId flat = b.node("flat", "Flatten", {b.input("x", DType::kF32, {-1, 3, 1, 1})});
  b.output(end(b, flat));
  return b.graph;
}

std::vector<float> scores(const Graph& graph, OutputType type) {
  const Classifier classifier(Model(std::make_shared<const Graph>(graph)), RunOptions(), {1, 3, 1, 1}, type, "");
  std::vector<float> found;
  const auto load = [](std::int64_t, std::span<float> out) { std::copy_n(std::array{0.0f, 1.0f, 3.0f}.begin(), 3, out.begin()); };
  classifier.for_each(
      0, 1, 1, 0, load, [&](const Classifier::Item& item) { found.assign(item.scores.begin(), item.scores.end()); }, nullptr);
  return found;
}

void expect_both(const Graph& graph) {
  const double sum = 1 + std::exp(1.0) + std::exp(3.0);
  const auto probabilities = scores(graph, OutputType::kProbabilities), logits = scores(graph, OutputType::kLogits);
  ASSERT_EQ(probabilities.size(), 3u);
  ASSERT_EQ(logits.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const double x = std::array{0.0, 1.0, 3.0}[i];
    EXPECT_NEAR(probabilities[i], std::exp(x) / sum, 1e-6);
    EXPECT_NEAR(logits[i], x, 1e-6);
  }
}

TEST(Classifier, ANetworkWithoutASoftmaxGetsOne) {
  expect_both(network([](GraphBuilder&, ValueId x) { return x; }));
}

TEST(Classifier, ASoftmaxIsSeenThroughWhatFollowsIt) {
  const auto softmax = [](GraphBuilder& b, ValueId x) { return b.node("softmax", "Softmax", {x}, attributes({{"axis", std::int64_t{1}}})); };
  expect_both(network(softmax));
  expect_both(network([&](GraphBuilder& b, ValueId x) {
    return b.node("cast", "Cast", {b.node("narrow", "Cast", {softmax(b, x)}, attributes({{"to", std::int64_t{11}}}))},
                  attributes({{"to", std::int64_t{1}}}));
  }));
  expect_both(network([&](GraphBuilder& b, ValueId x) { return b.node("reshape", "Reshape", {softmax(b, x), b.constant("s", i64({2}, {-1, 3}))}); }));
  expect_both(network([&](GraphBuilder& b, ValueId x) { return b.node("flatten", "Flatten", {softmax(b, x)}); }));
}

TEST(Classifier, ASoftmaxInPiecesIsOne) {
  expect_both(network([](GraphBuilder& b, ValueId x) {
    const ValueId exp = b.node("exp", "Exp", {x});
    return b.node("div", "Div", {exp, b.node("sum", "ReduceSum", {exp, b.constant("axes", i64({1}, {1}))})});
  }));
}

TEST(Classifier, TheMemoryLimitHoldsForTheQueueAndForTheBatchOutside) {
  const auto graph = std::make_shared<const Graph>(network([](GraphBuilder&, ValueId x) { return x; }));
  RunOptions options;
  options.memory = MemoryPolicy::parse("limit=1GiB");
  const RunReport alone = Predictor(Model(graph), options).plan({{8, 3, 1, 1}});
  const Classifier classifier(Model(graph), options, {1, 3, 1, 1}, OutputType::kLogits, "");
  const RunReport counted = classifier.predictor().plan({{8, 3, 1, 1}});
  EXPECT_EQ(counted.io_bytes, 2 * alone.io_bytes);
  EXPECT_GE(counted.predicted_bytes, alone.predicted_bytes + alone.io_bytes + 256 * 3 * sizeof(float));
}

TEST(Classifier, MoreThanAScoreForEachClassIsRefused) {
  const Graph graph = network([](GraphBuilder& b, ValueId x) {
    const ValueId maps = b.node("maps", "Reshape", {x, b.constant("s", i64({4}, {-1, 3, 1, 1}))});
    return b.node("wide", "Expand", {maps, b.constant("t", i64({4}, {1, 1, 2, 2}))});
  });
  EXPECT_THROW(scores(graph, OutputType::kProbabilities), Unsupported);
  EXPECT_THROW(scores(graph, OutputType::kLogits), Unsupported);
}

}  // namespace
}  // namespace tandem::test
