// Update graphs against Keras 3 and torch 2 (tests/data/optimizers, float64), and in their inputs' own memory.
#include "runtime/graph/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/plan/execute.h"
#include "tests/support/gradient_check.h"

namespace tandem::test {
namespace {

using Json = nlohmann::json;

Json reference(const std::string& name) {
  std::ifstream in(std::string(TANDEM_SOURCE_DIR) + "/tests/data/optimizers/" + name + ".json");
  return Json::parse(in);
}

Tensor array(const Shape& shape, const std::vector<double>& values) {
  const std::vector<float> narrow(values.begin(), values.end());
  return Tensor::of<float>(shape, std::span<const float>(narrow));
}

Tensor scalars_of(const OptimizerOptions& o, double rate, std::int64_t iteration, double scale) {
  const StepScalars s = step_scalars(o, static_cast<float>(rate), iteration, scale);
  return Tensor::of<float>({kStepScalars}, std::span<const float>(s));
}

std::vector<Tensor> initial_slots(const UpdateGraph& g, const std::vector<Tensor>& weights) {
  std::vector<Tensor> slots;
  for (const OptimizerSlot& s : g.slots) {
    slots.push_back(s.starts_at_weight ? weights[s.parameter]
                                       : array(s.shape, std::vector<double>(static_cast<std::size_t>(elements(s.shape)), s.initial)));
  }
  return slots;
}

// Weights and slots of a run, moved on step by step.
struct Optimizer {
  UpdateGraph graph;
  OptimizerOptions options;
  std::vector<Tensor> weights, slots;
  double norm = 0, penalty = 0;
  std::int64_t iteration = 0;

  Optimizer(const std::vector<TrainedParameter>& p, const OptimizerOptions& o, std::vector<Tensor> start)
      : graph(make_update_graph(p, o)), options(o), weights(std::move(start)), slots(initial_slots(graph, weights)) {}

  void step(const std::vector<Tensor>& gradients, double rate, double scale) {
    std::vector<Tensor> inputs = weights;
    inputs.insert(inputs.end(), gradients.begin(), gradients.end());
    inputs.insert(inputs.end(), slots.begin(), slots.end());
    inputs.push_back(scalars_of(options, rate, iteration++, scale));
    const auto out = run_planned(graph.graph, inputs);
    const auto middle = out.begin() + static_cast<long>(weights.size());
    std::copy(out.begin(), middle, weights.begin());
    std::copy_n(middle, slots.size(), slots.begin());
    norm = out[out.size() - 2].to_doubles()[0];
    penalty = out.back().to_doubles()[0];
  }
};

struct Given {
  std::vector<TrainedParameter> parameters;
  std::vector<Tensor> start;
  std::vector<std::vector<Tensor>> gradients;

  explicit Given(const Json& file) {
    const auto shapes = file["shapes"].get<std::vector<Shape>>();
    for (std::size_t p = 0; p < shapes.size(); ++p) {
      parameters.push_back({.name = "p" + std::to_string(p), .shape = shapes[p]});
      start.push_back(array(shapes[p], file["start"][p]));
    }
    for (const Json& step : file["gradients"]) {
      gradients.emplace_back();
      for (std::size_t p = 0; p < shapes.size(); ++p) gradients.back().push_back(array(shapes[p], step[p]));
    }
  }
};

OptimizerOptions options_of(const Json& c, OptimizerConvention convention) {
  OptimizerOptions o = default_optimizer(c["optimizer"].get<std::string>(), convention);
  const std::map<std::string, double*> numbers = {{"momentum", &o.momentum},
                                                  {"rho", &o.rho},
                                                  {"beta1", &o.beta1},
                                                  {"beta2", &o.beta2},
                                                  {"epsilon", &o.epsilon},
                                                  {"weight_decay", &o.weight_decay},
                                                  {"clip_norm", &o.clip_norm},
                                                  {"clip_value", &o.clip_value},
                                                  {"global_clip_norm", &o.global_clip_norm},
                                                  {"ema", &o.ema}};
  for (const auto& [name, value] : c["options"].items()) {
    if (name == "centered") o.centered = value;
    if (numbers.contains(name)) *numbers.at(name) = value;
  }
  return o;
}

// The largest number that an array held in the steps [0, last] of a case.
double largest(const Json& steps, std::size_t last, const Json::json_pointer& where) {
  double most = 0;
  for (std::size_t s = 0; s <= last; ++s) {
    for (const double v : steps[s].at(where)) most = std::max(most, std::abs(v));
  }
  return most;
}

// Four steps in float32 beside four in float64: a few roundings of the largest number that the array held (momentum of 10 may cancel to 0.2).
void expect_near(const Tensor& got, const Json& steps, std::size_t step, const std::string& where) {
  const Json::json_pointer at(where);
  const auto values = got.to_doubles(), wanted = steps[step].at(at).get<std::vector<double>>();
  ASSERT_EQ(values.size(), wanted.size()) << where;
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], wanted[i], 3e-7 * largest(steps, step, at)) << where << ", element " << i;
}

void expect_state(const Optimizer& run, const Json& steps, std::size_t step) {
  for (std::size_t p = 0; p < run.weights.size(); ++p) expect_near(run.weights[p], steps, step, "/weights/" + std::to_string(p));
  for (std::size_t s = 0; s < run.slots.size(); ++s) {
    const OptimizerSlot& slot = run.graph.slots[s];
    expect_near(run.slots[s], steps, step, "/slots/" + slot.name + "/" + std::to_string(slot.parameter));
  }
}

void follow(const std::string& framework, OptimizerConvention convention) {
  const Json file = reference(framework);
  const Given given(file);
  for (const Json& c : file["cases"]) {
    if (c["options"].contains("accumulate")) continue;
    Optimizer run(given.parameters, options_of(c, convention), given.start);
    for (std::size_t s = 0; s < given.gradients.size(); ++s) {
      run.step(given.gradients[s], c["options"]["lr"], 1);
      SCOPED_TRACE(framework + " " + c["name"].get<std::string>() + ", step " + std::to_string(s));
      ASSERT_NO_FATAL_FAILURE(expect_state(run, c["steps"], s));
      EXPECT_EQ(run.slots.size(), c["steps"][s]["slots"].size() * run.weights.size());
    }
  }
}

TEST(UpdateGraph, FollowsKeras) { follow("keras", OptimizerConvention::kKeras); }

TEST(UpdateGraph, FollowsTorch) { follow("torch", OptimizerConvention::kTorch); }

TEST(UpdateGraph, AccumulatesAsKeras) {
  const Json file = reference("keras");
  const Given given(file);
  const auto c = std::find_if(file["cases"].begin(), file["cases"].end(), [](const Json& one) { return one["name"] == "accumulate"; });
  ASSERT_NE(c, file["cases"].end());
  Optimizer run(given.parameters, options_of(*c, OptimizerConvention::kKeras), given.start);
  const Graph accumulate = make_accumulate_graph(given.parameters);
  std::vector<Tensor> sums;
  for (std::size_t s = 0; s < given.gradients.size(); ++s) {
    if (s % 2 == 0) sums = {Tensor(DType::kF32, run.weights[0].shape()), Tensor(DType::kF32, run.weights[1].shape())};
    std::vector<Tensor> inputs = run.weights;
    inputs.insert(inputs.end(), given.gradients[s].begin(), given.gradients[s].end());
    inputs.insert(inputs.end(), sums.begin(), sums.end());
    inputs.push_back(scalars_of(run.options, 0, 0, 1));
    const auto out = run_planned(accumulate, inputs);
    double squares = 0;
    for (const Tensor& g : given.gradients[s]) {
      for (const double v : g.to_doubles()) squares += v * v;
    }
    EXPECT_NEAR(out[2].to_doubles()[0], std::sqrt(squares), 1e-12);
    sums = {out[0], out[1]};
    if (s % 2 == 1) run.step(sums, (*c)["options"]["lr"], 0.5);
    expect_state(run, (*c)["steps"], s);
  }
}

// g = scale * sum + 2 * l2 * w; rates and decay of an array of its own; the norm is taken before clipping.
TEST(UpdateGraph, ScaleL2AndFactors) {
  std::vector<TrainedParameter> p = {{.name = "a", .shape = {2}, .rate_factor = 0.5, .l2 = 0.25}, {.name = "b", .shape = {1}, .decays = false}};
  OptimizerOptions o;
  o.weight_decay = 0.5;
  o.clip_value = 1;
  Optimizer run(p, o, {array({2}, {1, -2}), array({1}, {4})});
  run.step({array({2}, {4, 8}), array({1}, {-16})}, 0.25, 0.125);
  // a: g = {0.5 + 0.5, 1 - 1}, rate 0.125, decay 0.0625 * w; b: g = -2, cut to -1.
  EXPECT_EQ(run.weights[0].to_doubles(), (std::vector<double>{1 - 0.0625 - 0.125, -2 + 0.125}));
  EXPECT_EQ(run.weights[1].to_doubles(), (std::vector<double>{4.25}));
  EXPECT_EQ(run.norm, std::sqrt(1.0 + 4.0));
  EXPECT_EQ(run.penalty, 0.25 * 5);
}

TEST(UpdateGraph, ANormThatIsNoNumberReachesEveryArray) {
  const std::vector<TrainedParameter> p = {{.name = "a", .shape = {1}}, {.name = "b", .shape = {1}}};
  OptimizerOptions o;
  o.global_clip_norm = 1;
  Optimizer run(p, o, {array({1}, {1}), array({1}, {1})});
  run.step({array({1}, {INFINITY}), array({1}, {1})}, 0.1, 1);
  EXPECT_TRUE(std::isnan(run.weights[0].to_doubles()[0]));
  EXPECT_TRUE(std::isnan(run.weights[1].to_doubles()[0]));
}

// The plan's outputs lie in the inputs' memory, two threads share the tasks: bit for bit what separate memory and one thread give.
TEST(UpdateGraph, InPlace) {
  for (const char* name : {"nesterov", "rmsprop", "adam", "adagrad"}) {
    OptimizerOptions o = default_optimizer(name, OptimizerConvention::kKeras);
    o.ema = 0.5;
    o.global_clip_norm = 0.5;
    const std::vector<TrainedParameter> p = {{.name = "a", .shape = {300, 301}, .l2 = 0.01}, {.name = "b", .shape = {7}}};
    const std::vector<Tensor> gradients = {random_f32({300, 301}, 3), random_f32({7}, 4)};
    Optimizer apart(p, o, {random_f32({300, 301}, 1), random_f32({7}, 2)});
    std::vector<Tensor> state = {random_f32({300, 301}, 1), random_f32({7}, 2)};
    for (const Tensor& s : apart.slots) {
      state.emplace_back(DType::kF32, s.shape());
      std::copy_n(s.as<float>().data(), s.size(), state.back().as_mutable<float>().data());
    }
    const Tensor scalars = scalars_of(o, 0.1, 0, 0.25);
    Tensor norm(DType::kF64, {1}), penalty(DType::kF64, {1});
    InputBinding binding;
    std::vector<const void*> in;
    std::vector<void*> out;
    const auto add = [&](const Tensor& t) {
      binding.shapes.push_back(t.shape());
      in.push_back(t.data());
    };
    for (std::size_t i = 0; i < 2; ++i) add(state[i]);
    for (const Tensor& g : gradients) add(g);
    for (std::size_t i = 2; i < state.size(); ++i) add(state[i]);
    add(scalars);
    for (Tensor& t : state) out.push_back(t.mutable_data());
    out.push_back(norm.mutable_data());
    out.push_back(penalty.mutable_data());

    const CpuInfo cpu;
    Plan plan = make_plan(apart.graph.graph, binding, {}, cpu);
    MappedMemory memory;
    TaskPool pool(2);
    WeightStore store(memory, pool);
    const auto packed = store.pack(plan);
    const Buffer arena(memory, plan.arena_bytes);
    std::vector<WorkerSpace> spaces;
    for (int i = 0; i < 2; ++i) spaces.emplace_back(memory);
    for (WorkerSpace& s : spaces) s.fit(plan);
    run_together({.plan = &plan, .weights = packed.get(), .arena = arena.data(), .inputs = in, .outputs = out}, pool, spaces);
    apart.step(gradients, 0.1, 0.25);
    const auto same = [&](const Tensor& a, const Tensor& b) { return std::memcmp(a.data(), b.data(), a.bytes()) == 0; };
    for (std::size_t i = 0; i < state.size(); ++i) EXPECT_TRUE(same(state[i], i < 2 ? apart.weights[i] : apart.slots[i - 2])) << name << i;
    EXPECT_EQ(norm.to_doubles()[0], apart.norm);
    EXPECT_EQ(penalty.to_doubles()[0], apart.penalty);
  }
}

TEST(UpdateGraph, Refuses) {
  const std::vector<TrainedParameter> p = {{.name = "a", .shape = {1}}};
  EXPECT_THROW(make_update_graph({}, {}), UsageError);
  OptimizerOptions two;
  two.clip_norm = two.clip_value = 1;
  EXPECT_THROW(make_update_graph(p, two), UsageError);
  OptimizerOptions nesterov;
  nesterov.nesterov = true;
  EXPECT_THROW(check(nesterov), UsageError);
  OptimizerOptions beta;
  beta.beta2 = 1;
  EXPECT_THROW(check(beta), UsageError);
  EXPECT_THROW(default_optimizer("lamb", OptimizerConvention::kKeras), UsageError);
}

// Keras: sqrt(1 - b2^t) / (1 - b1^t) with betas of float32.
TEST(StepScalars, RatesOfAdam) {
  const OptimizerOptions keras = default_optimizer("adam", OptimizerConvention::kKeras),
                         torch = default_optimizer("adam", OptimizerConvention::kTorch);
  const auto wide = [](float v) { return static_cast<double>(v); };
  const auto k = step_scalars(keras, 0.5f, 2, 0.125), t = step_scalars(torch, 0.5f, 2, 0.125);
  EXPECT_EQ(k[kGradientScale], 0.125f);
  EXPECT_EQ(k[kRate], 0.5f);
  EXPECT_FLOAT_EQ(k[kStepRate], static_cast<float>(0.5 * std::sqrt(1 - std::pow(wide(0.999f), 3)) / (1 - std::pow(wide(0.9f), 3))));
  EXPECT_EQ(k[kSecondRoot], 1.0f);
  EXPECT_FLOAT_EQ(t[kStepRate], static_cast<float>(0.5 / (1 - 0.9 * 0.9 * 0.9)));
  EXPECT_FLOAT_EQ(t[kSecondRoot], static_cast<float>(std::sqrt(1 - 0.999 * 0.999 * 0.999)));
}

}  // namespace
}  // namespace tandem::test
