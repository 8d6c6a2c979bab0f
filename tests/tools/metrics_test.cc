// Metrics and scoring by hand, also where a network's answer is no number.
#include "tools/metrics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "tools/scoring.h"

namespace tandem::test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
using Row = std::array<float, 3>;

void add(cli::Metrics& m, std::int64_t label, const Row& scores) { m.add(label, scores); }

TEST(Metrics, CountsByHand) {
  cli::Metrics m(3);
  add(m, 0, {0.7f, 0.2f, 0.1f});
  add(m, 1, {0.6f, 0.3f, 0.1f});
  add(m, 1, {0.1f, 0.8f, 0.1f});
  EXPECT_DOUBLE_EQ(m.top1(), 2.0 / 3);
  EXPECT_NEAR(m.loss(), -(std::log(0.7) + std::log(0.3) + std::log(0.8)) / 3, 1e-7);
  const auto classes = m.per_class();
  EXPECT_EQ(classes[1].samples, 2);
  EXPECT_EQ(classes[1].recall, 0.5);
  EXPECT_EQ(classes[0].precision, 0.5);
  EXPECT_EQ(classes[0].auc, 1);  // 0.7 before 0.6 and 0.1
  EXPECT_TRUE(std::isnan(classes[2].auc));
  EXPECT_EQ(m.without_prediction(), 0);
}

// Scores of a sigmoid for each class, as Keras' categorical cross entropy takes them: shares of their sum.
TEST(Metrics, TheLossTakesSharesOfTheSum) {
  cli::Metrics m(3);
  add(m, 1, {0.5f, 0.5f, 0.25f});
  EXPECT_NEAR(m.loss(), -std::log(0.4), 1e-7);
}

// A NaN is no prediction: wrong for every class, also for the first, where a search for the largest stays. It has no rank either.
TEST(Metrics, NaNIsWrongAndEnds) {
  cli::Metrics m(3);
  add(m, 0, {kNaN, kNaN, kNaN});
  add(m, 1, {0.1f, 0.8f, kNaN});
  add(m, 2, {0.1f, 0.2f, 0.7f});
  EXPECT_EQ(m.samples(), 3);
  EXPECT_EQ(m.without_prediction(), 2);
  EXPECT_DOUBLE_EQ(m.top1(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(m.top5(), 1.0 / 3);
  EXPECT_TRUE(std::isnan(m.loss()));
  EXPECT_TRUE(std::isnan(m.macro_auc()));
  const auto classes = m.per_class();
  EXPECT_EQ(classes[0].samples, 1);
  EXPECT_EQ(classes[0].recall, 0);
  EXPECT_EQ(classes[2].f1, 1);
  EXPECT_EQ(m.confused(0, 0), 0);
}

TEST(Scoring, NaNIsNotRight) {
  Graph graph;  // what comes in goes out: logits
  graph.inputs = {graph.add_value("x")};
  graph.outputs = graph.inputs;
  const std::vector<float> first = {1, 0, 0}, none = {kNaN, kNaN, kNaN}, one = {0.9f, 0.1f, 0}, zeros = {0, 0, 0};
  EXPECT_EQ(cli::Scoring(graph, "categorical").measure(none, first).accuracy, 0);
  EXPECT_EQ(cli::Scoring(graph, "categorical").measure(one, first).accuracy, 1);
  EXPECT_EQ(cli::Scoring(graph, "binary").measure(none, zeros).accuracy, 0);
}

}  // namespace
}  // namespace tandem::test
