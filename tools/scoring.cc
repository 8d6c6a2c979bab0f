#include "tools/scoring.h"

#include <algorithm>
#include <cmath>

#include "parallel/replica_group.h"

namespace tandem::cli {
namespace {

using Activation = NetworkEnd::Activation;
constexpr double kCut = 1e-7;

bool has_nan(std::span<const float> v) {
  return std::any_of(v.begin(), v.end(), [](float x) { return std::isnan(x); });
}

double cut(double p) { return std::clamp(p, kCut, 1 - kCut); }

double categorical(std::span<const float> x, std::span<const float> t, bool logits) {
  double loss = 0;
  if (logits) {
    const double top = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (const float v : x) sum += std::exp(static_cast<double>(v) - top);
    for (std::size_t i = 0; i < x.size(); ++i) loss += static_cast<double>(t[i]) * (top + std::log(sum) - static_cast<double>(x[i]));
    return loss;
  }
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v);
  for (std::size_t i = 0; i < x.size(); ++i) loss -= static_cast<double>(t[i]) * std::log(cut(static_cast<double>(x[i]) / sum));
  return loss;
}

double binary(std::span<const float> x, std::span<const float> t, bool logits) {
  double loss = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = static_cast<double>(x[i]), y = static_cast<double>(t[i]);
    loss += logits ? std::max(v, 0.0) - v * y + std::log1p(std::exp(-std::abs(v))) : -y * std::log(cut(v)) - (1 - y) * std::log(cut(1 - v));
  }
  return loss / static_cast<double>(x.size());
}

GroupOptions group_options(const RunOptions& options) {
  return {.replicas = static_cast<int>(options.devices.size()),
          .plan = {.precision = options.precision, .passes = options.passes},
          .weights_per_replica = options.weights_per_device,
          .split = options.split};
}

}  // namespace

double Scoring::loss(std::span<const float> prediction, std::span<const float> target) const {
  if (loss_ == "categorical") return categorical(prediction, target, end_ == Activation::kNone);
  if (loss_ == "binary") return binary(prediction, target, end_ == Activation::kNone);
  const Measures errors = measure(prediction, target);
  return loss_ == "mse" ? *errors.mse : *errors.mae;
}

Measures Scoring::measure(std::span<const float> prediction, std::span<const float> target) const {
  const auto top = [](std::span<const float> v) { return std::max_element(v.begin(), v.end()) - v.begin(); };
  if (loss_ == "categorical") return {.accuracy = !has_nan(prediction) && top(prediction) == top(target) ? 1.0 : 0.0, .mae = {}, .mse = {}};
  const auto n = static_cast<double>(prediction.size());
  double right = 0, absolute = 0, squared = 0;
  for (std::size_t i = 0; i < prediction.size(); ++i) {
    const double d = static_cast<double>(prediction[i]) - static_cast<double>(target[i]);
    right += !std::isnan(prediction[i]) && (prediction[i] > half()) == (target[i] > 0.5f);
    absolute += std::abs(d);
    squared += d * d;
  }
  if (loss_ == "binary") return {.accuracy = right / n, .mae = {}, .mse = {}};
  return {.accuracy = {}, .mae = absolute / n, .mse = squared / n};
}

Scoring::Guess Scoring::guess(std::span<const float> prediction) const {
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  if (prediction.size() == 1) {
    const double v = static_cast<double>(prediction[0]), p = end_ == Activation::kNone ? sigmoid(v) : v;
    return p > 0.5 ? Guess{1, p} : Guess{0, 1 - p};
  }
  const auto best = std::max_element(prediction.begin(), prediction.end());
  const double top = static_cast<double>(*best);
  Guess guess{best - prediction.begin(), top};
  if (end_ != Activation::kNone) return guess;
  double sum = 0;
  for (const float v : prediction) sum += std::exp(static_cast<double>(v) - top);
  guess.probability = loss_ == "categorical" ? 1 / sum : sigmoid(top);
  return guess;
}

MemoryPrediction predict_validation(std::shared_ptr<const Graph> graph, const Shape& batch, const RunOptions& options, TaskPool& pool) {
  const CpuInfo cpu = CpuInfo::detect();
  ReplicaGroup group(std::move(graph), group_options(options), pool, cpu);
  const InputBinding binding{{batch}, {}};
  return group.predict(*group.prepare(binding), binding);
}

void Score::add(const Measures& m) {
  right += m.accuracy.value_or(0);
  scored += m.accuracy.has_value();
  absolute += m.mae.value_or(0);
  squared += m.mse.value_or(0);
  measured += m.mae.has_value();
}

std::optional<Score> validate(std::shared_ptr<const Graph> graph, io::BatchSource& source, const Scoring& scoring, const RunOptions& options,
                              TaskPool& pool, const PassHooks& hooks) {
  const CpuInfo cpu = CpuInfo::detect();
  ReplicaGroup group(std::move(graph), group_options(options), pool, cpu);
  Score score;
  source.start({});
  for (std::int64_t b = source.batches(); b > 0; --b) {
    const auto batch = source.next();
    if (!batch) break;
    const Tensor scores = group.run({batch->x})[0];
    const std::int64_t rows = batch->x.shape()[0], width = batch->target.size() / rows;
    const auto y = scores.as<float>(), t = batch->target.as<float>(), w = batch->weight.as<float>();
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto at = static_cast<std::size_t>(r * width), count = static_cast<std::size_t>(width), row = static_cast<std::size_t>(r);
      const auto prediction = y.subspan(at, count), target = t.subspan(at, count);
      const double loss = scoring.loss(prediction, target);
      score.loss_sum += static_cast<double>(w[row]) * loss;
      score.add(scoring.measure(prediction, target));
      if (!hooks.each) continue;
      const Scoring::Guess guess = scoring.guess(prediction);
      hooks.each({batch->index[row], batch->label[row], guess.output, guess.probability, loss, prediction, target});
    }
    score.samples += rows;
    if (hooks.goes_on && !hooks.goes_on()) return {};
  }
  return score;
}

}  // namespace tandem::cli
