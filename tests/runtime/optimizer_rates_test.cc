// Rates of their own for some parameters, beside plain double-precision code: every optimizer in both conventions, decoupled and coupled decay.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/graph/optimizer.h"
#include "tests/support/gradient_check.h"

namespace tandem::test {
namespace {

using Numbers = std::vector<double>;
constexpr int kSteps = 4;
constexpr double kRateOfAll = 0.05, kDecay = 0.02;

// One array under one optimizer, as the frameworks write it down; a torch parameter group's or a Keras optimizer's own rate.
struct Plain {
  OptimizerOptions o;
  double rate = 0;
  Numbers w, first, second, third;
  int t = 0;

  void step(const Numbers& gradients) {
    ++t;
    first.resize(w.size(), 0);
    second.resize(w.size(), o.kind == OptimizerKind::kAdagrad ? o.accumulator : 0);
    third.resize(w.size(), 0);
    const bool torch = o.convention == OptimizerConvention::kTorch;
    for (std::size_t i = 0; i < w.size(); ++i) {
      double g = gradients[i];
      if (torch && o.kind != OptimizerKind::kAdamW)
        g += o.weight_decay * w[i];
      else
        w[i] -= rate * o.weight_decay * w[i];
      switch (o.kind) {
        case OptimizerKind::kSgd:
          sgd(i, g, torch);
          break;
        case OptimizerKind::kRmsprop:
          rmsprop(i, g, torch);
          break;
        case OptimizerKind::kAdagrad:
          second[i] += g * g;
          w[i] -= rate * g / (torch ? std::sqrt(second[i]) + o.epsilon : std::sqrt(second[i] + o.epsilon));
          break;
        default:
          adam(i, g, torch);
      }
    }
  }
  void sgd(std::size_t i, double g, bool torch) {
    first[i] = o.momentum * first[i] + (torch ? g : -rate * g);
    if (torch)
      w[i] -= rate * (o.nesterov ? g + o.momentum * first[i] : first[i]);
    else
      w[i] += o.nesterov ? o.momentum * first[i] - rate * g : first[i];
  }
  void rmsprop(std::size_t i, double g, bool torch) {
    second[i] = o.rho * second[i] + (1 - o.rho) * g * g;
    third[i] = o.rho * third[i] + (1 - o.rho) * g;
    const double q = o.centered ? second[i] - third[i] * third[i] : second[i];
    const double d = torch ? g / (std::sqrt(q) + o.epsilon) : rate * g / std::sqrt(q + o.epsilon);
    first[i] = o.momentum * first[i] + d;
    w[i] -= torch ? rate * first[i] : first[i];
  }
  void adam(std::size_t i, double g, bool torch) {
    first[i] = o.beta1 * first[i] + (1 - o.beta1) * g;
    second[i] = o.beta2 * second[i] + (1 - o.beta2) * g * g;
    // Keras takes the powers of betas that were rounded to float32 (runtime/graph/optimizer.h).
    const auto beta = [&](double v) { return torch ? v : static_cast<double>(static_cast<float>(v)); };
    const double a = 1 - std::pow(beta(o.beta1), t), b = std::sqrt(1 - std::pow(beta(o.beta2), t));
    w[i] -= torch ? rate / a * first[i] / (std::sqrt(second[i]) / b + o.epsilon) : rate * b / a * first[i] / (std::sqrt(second[i]) + o.epsilon);
  }
};

Tensor array(const Numbers& values) {
  const std::vector<float> narrow(values.begin(), values.end());
  return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, std::span<const float>(narrow));
}

// What float32 holds, so that both begin with the same numbers.
Numbers drawn(std::uint64_t seed) { return random_f32({6}, seed).to_doubles(); }

OptimizerOptions options_of(const std::string& name, OptimizerConvention convention) {
  OptimizerOptions o = default_optimizer(name == "centred" ? "rmsprop" : name, convention);
  o.weight_decay = kDecay;
  if (name == "centred") {
    o.centered = true;
    o.momentum = 0.5;
    o.epsilon = 1e-3;  // the difference of two squares is small
  }
  return o;
}

// Three arrays, with factors 1, 0.1 and 8.
void follow(const std::string& name, OptimizerConvention convention) {
  const OptimizerOptions o = options_of(name, convention);
  const Numbers factors = {1, 0.1, 8};
  std::vector<TrainedParameter> parameters;
  std::vector<Plain> plain;
  std::vector<Tensor> weights, slots;
  for (std::size_t p = 0; p < factors.size(); ++p) {
    parameters.push_back({.name = std::to_string(p), .shape = {6}, .rate_factor = factors[p]});
    plain.push_back({.o = o, .rate = kRateOfAll * factors[p], .w = drawn(p), .first = {}, .second = {}, .third = {}});
    weights.push_back(array(plain[p].w));
  }
  const UpdateGraph update = make_update_graph(parameters, o);
  for (const OptimizerSlot& s : update.slots) slots.push_back(array(Numbers(6, static_cast<double>(s.initial))));
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Tensor> inputs = weights;
    for (std::size_t p = 0; p < factors.size(); ++p) {
      const Numbers g = drawn(100 + 10 * static_cast<std::uint64_t>(step) + p);
      inputs.push_back(array(g));
      plain[p].step(g);
    }
    inputs.insert(inputs.end(), slots.begin(), slots.end());
    const StepScalars s = step_scalars(o, static_cast<float>(kRateOfAll), step, 1);
    inputs.push_back(Tensor::of<float>({kStepScalars}, std::span<const float>(s)));
    const auto out = run_planned(update.graph, inputs);
    std::copy_n(out.begin(), weights.size(), weights.begin());
    std::copy_n(out.begin() + static_cast<long>(weights.size()), slots.size(), slots.begin());
    for (std::size_t p = 0; p < factors.size(); ++p) {
      const Numbers found = weights[p].to_doubles(), start = drawn(p);
      for (std::size_t i = 0; i < found.size(); ++i) {
        const double most = std::max({std::abs(start[i]), std::abs(plain[p].w[i]), std::abs(plain[p].w[i] - start[i]), 0.1});
        EXPECT_NEAR(found[i], plain[p].w[i], 2e-6 * most) << name << ", array " << p << ", element " << i << ", step " << step;
      }
    }
  }
}

TEST(RateFactors, FollowDoublePrecisionInEveryOptimizer) {
  for (const char* name : {"sgd", "momentum", "nesterov", "rmsprop", "centred", "adam", "adamw", "adagrad"}) {
    follow(name, OptimizerConvention::kKeras);
    follow(name, OptimizerConvention::kTorch);
  }
}

}  // namespace
}  // namespace tandem::test
