// Schedules against Keras 3.15 (tests/data/optimizers/make_schedules.py).
#include "parallel/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"

namespace tandem::test {
namespace {

using Json = nlohmann::json;

Json reference() {
  std::ifstream in(std::string(TANDEM_SOURCE_DIR) + "/tests/data/optimizers/schedules.json");
  return Json::parse(in);
}

// Keras computes in float32: a rounding of the largest rate, 0.1.
void expect_rates(const std::string& name, const Schedule& s) {
  const auto want = reference()["rates"][name].get<std::vector<double>>();
  ASSERT_EQ(want.size(), 30u);
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(rate_at(s, static_cast<std::int64_t>(i)), want[i], 1e-8) << name << ", iteration " << i;
}

TEST(Schedule, FollowsKeras) {
  expect_rates("cosine", {.kind = ScheduleKind::kCosine, .rate = 0.1, .decay_steps = 24});
  Schedule warm{.kind = ScheduleKind::kCosine, .rate = 0.1, .min_rate = 0.01, .warmup_steps = 4, .decay_steps = 20};
  expect_rates("cosine_warmup", warm);
  warm.warmup_start = 0.025;
  expect_rates("cosine_from", warm);
  Schedule fall{.kind = ScheduleKind::kExponential, .rate = 0.1, .decay_steps = 6, .factor = 0.5};
  expect_rates("exponential", fall);
  fall.staircase = true;
  expect_rates("staircase", fall);
  expect_rates("polynomial", {.kind = ScheduleKind::kPolynomial, .rate = 0.1, .min_rate = 0.01, .decay_steps = 24, .power = 2});
  expect_rates("piecewise", {.kind = ScheduleKind::kStep, .rate = 0.1, .factor = 0.1, .boundaries = {3, 11}});
}

// The rates of fixture a_cosine_warmup: CosineDecay(0, 9, alpha 0.1, warmup_target 0.1, warmup_steps 3).
TEST(Schedule, CosineWithWarmup) {
  const Schedule s{.kind = ScheduleKind::kCosine, .rate = 0.1, .min_rate = 0.01, .warmup_steps = 3, .decay_steps = 9};
  const double want[] = {0,      0.033333335, 0.06666667,  0.1,         0.09728617,  0.089471996,
                         0.0775, 0.06281417,  0.047185827, 0.032499995, 0.020527992, 0.01271383};
  for (int i = 0; i < 12; ++i) EXPECT_NEAR(rate_at(s, i), want[i], 1e-8) << i;
}

TEST(Schedule, PlateauFollowsKeras) {
  const Json file = reference();
  for (const Json& c : file["plateau"]) {
    const Json& o = c["options"];
    Schedule s{.kind = ScheduleKind::kPlateau, .rate = 0.1};
    s.higher_is_better = c["mode"] == "max";
    s.patience = o["patience"];
    s.cooldown = o.value("cooldown", 0);
    s.factor = o.value("factor", 0.1);
    s.min_delta = o.value("min_delta", 1e-4);
    s.min_rate = o.value("min_lr", 0.0);
    PlateauState state = plateau_start(s);
    for (std::size_t e = 0; e < file["metrics"].size(); ++e) {
      const float before = state.rate;
      const bool reduced = plateau_observe(s, state, file["metrics"][e]);
      EXPECT_EQ(reduced, state.rate < before);
      const double want = c["rates"][e];
      EXPECT_NEAR(state.rate, want, 1e-6 * want) << o.dump() << ", epoch " << e;
    }
  }
}

TEST(Schedule, PlateauKeepsItsReductionsUnderAnotherRate) {
  Schedule s{.kind = ScheduleKind::kPlateau, .rate = 0.1, .min_rate = 0.02, .factor = 0.5, .patience = 1};
  PlateauState state = plateau_start(s);
  for (const double metric : {1.0, 1.0, 1.0}) plateau_observe(s, state, metric);
  EXPECT_FLOAT_EQ(state.rate, 0.025f);
  EXPECT_FALSE(plateau_rebase(s, state));  // the same rate, the same bits
  s.rate = 0.4;
  EXPECT_TRUE(plateau_rebase(s, state));
  EXPECT_FLOAT_EQ(state.rate, 0.1f);
  s.rate = 0.04;
  plateau_rebase(s, state);
  EXPECT_FLOAT_EQ(state.rate, 0.02f);
}

TEST(Schedule, PlateauTakesNoNumberForNoImprovement) {
  const Schedule s{.kind = ScheduleKind::kPlateau, .rate = 0.1, .factor = 0.5, .patience = 2};
  PlateauState state = plateau_start(s);
  EXPECT_FALSE(plateau_observe(s, state, std::nan("")));
  EXPECT_FALSE(state.best);
  EXPECT_TRUE(plateau_observe(s, state, std::nan("")));
  EXPECT_FALSE(plateau_observe(s, state, 3));
  EXPECT_EQ(state.best, 3);
}

TEST(Schedule, NothingFallsBelowTheLeastRate) {
  const Schedule s{.kind = ScheduleKind::kExponential, .rate = 1, .min_rate = 0.25, .decay_steps = 1, .factor = 0.5};
  EXPECT_EQ(rate_at(s, 1), 0.5f);
  EXPECT_EQ(rate_at(s, 2), 0.25f);
  EXPECT_EQ(rate_at(s, 1000000), 0.25f);
}

const ScheduleFrame kFrame{.rate = 0.5, .min_rate = 0.125, .steps_per_epoch = 10, .epochs = 9, .warmup_epochs = 1};

TEST(ScheduleText, Kinds) {
  const Schedule constant = parse_schedule("constant", kFrame);
  EXPECT_EQ(rate_at(constant, 0), 0);
  EXPECT_EQ(rate_at(constant, 5), 0.25f);
  EXPECT_EQ(rate_at(constant, 10), 0.5f);
  EXPECT_EQ(rate_at(constant, 5000), 0.5f);
  const Schedule cosine = parse_schedule("cosine", kFrame);
  EXPECT_EQ(rate_at(cosine, 10), 0.5f);
  EXPECT_FLOAT_EQ(rate_at(cosine, 50), 0.3125f);
  EXPECT_EQ(rate_at(cosine, 90), 0.125f);
  const Schedule polynomial = parse_schedule("polynomial:power=1", kFrame);
  EXPECT_FLOAT_EQ(rate_at(polynomial, 50), 0.3125f);
  EXPECT_EQ(rate_at(polynomial, 91), 0.125f);
  const Schedule exponential = parse_schedule("exponential:every=1,factor=0.5,staircase=1", kFrame);
  EXPECT_EQ(rate_at(exponential, 19), 0.5f);
  EXPECT_EQ(rate_at(exponential, 20), 0.25f);
  EXPECT_EQ(rate_at(exponential, 60), 0.125f);
}

// Epoch 3 begins at iteration 30: its first step has the new rate.
TEST(ScheduleText, StepsFallWithTheEpoch) {
  ScheduleFrame frame = kFrame;
  frame.min_rate = 0;
  for (const char* text : {"step:factor=0.5", "step:every=3,factor=0.5", "step:at=3/6,factor=0.5"}) {
    const Schedule s = parse_schedule(text, frame);
    EXPECT_EQ(s.boundaries, (std::vector<std::int64_t>{29, 59})) << text;
    EXPECT_EQ(rate_at(s, 29), 0.5f);
    EXPECT_EQ(rate_at(s, 30), 0.25f);
    EXPECT_EQ(rate_at(s, 59), 0.25f);
    EXPECT_EQ(rate_at(s, 60), 0.125f);
    EXPECT_EQ(rate_at(s, 6000), 0.125f);
  }
}

TEST(ScheduleText, Plateau) {
  const Schedule s = parse_schedule("plateau:patience=3,factor=0.25,delta=0,cooldown=2", kFrame);
  EXPECT_EQ(s.patience, 3);
  EXPECT_EQ(s.factor, 0.25);
  EXPECT_EQ(s.min_delta, 0);
  EXPECT_EQ(s.cooldown, 2);
  EXPECT_EQ(plateau_start(s).rate, 0.5f);
}

TEST(ScheduleText, Refuses) {
  for (const char* text : {"", "linear", "cosine:power=2", "step:every=0", "step:at=6/3", "step:at=2/x", "exponential:factor", "exponential:factor=2",
                           "plateau:patience=1.5", "plateau:factor=1", "plateau:patience=-1", "polynomial:power=nan", "step:every=1e300"}) {
    EXPECT_THROW(parse_schedule(text, kFrame), UsageError) << text;
  }
  ScheduleFrame bad = kFrame;
  bad.min_rate = 1;
  EXPECT_THROW(parse_schedule("constant", bad), UsageError);
  bad = kFrame;
  bad.rate = 0;
  EXPECT_THROW(parse_schedule("constant", bad), UsageError);
  bad = kFrame;
  bad.warmup_epochs = -1;
  EXPECT_THROW(parse_schedule("constant", bad), UsageError);
}

}  // namespace
}  // namespace tandem::test
