#include "tools/value_metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tools/command.h"
#include "tools/metrics.h"

namespace tandem::cli {
namespace {

using nlohmann::ordered_json;

double ratio(double a, double b) { return b > 0 ? a / b : 0; }
double ratio(std::int64_t a, std::int64_t b) { return ratio(static_cast<double>(a), static_cast<double>(b)); }

ordered_json number(double v) { return std::isfinite(v) ? ordered_json(v) : ordered_json(nullptr); }

}  // namespace

ValueMetrics::ValueMetrics(const Scoring& scoring, const std::string& loss, std::int64_t outputs, std::vector<std::string> labels)
    : scoring_(scoring), yes_no_(loss == "binary"), labels_(std::move(labels)), outputs_(static_cast<std::size_t>(outputs)) {}

void ValueMetrics::add(std::span<const float> prediction, std::span<const float> target) {
  ++score_.samples;
  score_.loss_sum += scoring_.loss(prediction, target);
  score_.add(scoring_.measure(prediction, target));
  bool all = true;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    Output& o = outputs_[i];
    if (yes_no_) {
      const bool is = target[i] > 0.5f, says = prediction[i] > scoring_.half();
      o.is += is;
      o.says += says;
      o.both += is && says;
      all = all && is == says;
      scores_.push_back(prediction[i]);
      truth_.push_back(is);
      continue;
    }
    const double t = static_cast<double>(target[i]), d = static_cast<double>(prediction[i]) - t, from_mean = t - o.target_mean;
    o.absolute += std::abs(d);
    o.squared += d * d;
    o.target_mean += from_mean / static_cast<double>(score_.samples);
    o.target_squares += from_mean * (t - o.target_mean);
  }
  exact_ += all;
}

std::string ValueMetrics::name(std::size_t output) const { return output < labels_.size() ? labels_[output] : std::to_string(output); }

ValueMetrics::Label ValueMetrics::label(std::size_t output) const {
  const Output& o = outputs_[output];
  Label l{.precision = ratio(o.both, o.says), .recall = ratio(o.both, o.is)};
  l.f1 = ratio(2 * l.precision * l.recall, l.precision + l.recall);
  std::vector<std::pair<float, bool>> scored;
  for (std::size_t at = output; at < scores_.size(); at += outputs_.size()) scored.emplace_back(scores_[at], truth_[at]);
  l.auc = roc_area(std::move(scored));
  return l;
}

// Over the labels that occur.
ValueMetrics::Label ValueMetrics::mean_label() const {
  Label sum;
  double n = 0, areas = 0;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].is == 0) continue;
    const Label l = label(i);
    n += 1;
    sum.f1 += l.f1;
    if (std::isnan(l.auc)) continue;
    areas += 1;
    sum.auc += l.auc;
  }
  return {.precision = 0, .recall = 0, .f1 = ratio(sum.f1, n), .auc = areas > 0 ? sum.auc / areas : std::numeric_limits<double>::quiet_NaN()};
}

// 1 - squared error / squared distance from the mean; no number where the targets are all alike.
double ValueMetrics::r2(const Output& o) const {
  return o.target_squares > 0 ? 1 - o.squared / o.target_squares : std::numeric_limits<double>::quiet_NaN();
}

double ValueMetrics::mean_r2() const {
  double sum = 0;
  for (const Output& o : outputs_) sum += r2(o);
  return sum / static_cast<double>(outputs_.size());
}

std::string ValueMetrics::brief() const {
  return yes_no_ ? fmt::format("accuracy {:.4f}", score_.accuracy().value_or(0)) : fmt::format("mae {:.4g}", score_.mae().value_or(0));
}

std::string ValueMetrics::as_json(std::int64_t failed) const {
  const auto n = static_cast<double>(score_.samples);
  ordered_json j = {{"samples", score_.samples}, {"failed", failed}, {"loss", number(score_.loss())}};
  ordered_json rows = ordered_json::array();
  if (yes_no_) {
    const Label mean = mean_label();
    j["accuracy"] = score_.accuracy().value_or(0);
    j["exact"] = ratio(static_cast<double>(exact_), n);
    j["f1"] = number(mean.f1);
    j["auc"] = number(mean.auc);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const Label l = label(i);
      rows.push_back(
          {{"label", name(i)}, {"samples", outputs_[i].is}, {"precision", l.precision}, {"recall", l.recall}, {"f1", l.f1}, {"auc", number(l.auc)}});
    }
    j["labels"] = rows;
    return json_text(j);
  }
  j["mae"] = number(score_.mae().value_or(0));
  j["mse"] = number(score_.mse().value_or(0));
  j["r2"] = number(mean_r2());
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Output& o = outputs_[i];
    rows.push_back({{"label", name(i)}, {"mae", number(ratio(o.absolute, n))}, {"mse", number(ratio(o.squared, n))}, {"r2", number(r2(o))}});
  }
  j["outputs"] = rows;
  return json_text(j);
}

std::string ValueMetrics::as_text() const {
  const auto n = static_cast<double>(score_.samples);
  constexpr std::size_t kShown = 1000;
  const std::size_t shown = std::min(outputs_.size(), kShown);
  std::string text;
  if (yes_no_) {
    const Label mean = mean_label();
    text = fmt::format("samples {}  loss {:.4f}  accuracy {:.4f}  exact {:.4f}  F1 {:.4f}  AUC {:.4f}\n\n", score_.samples, score_.loss(),
                       score_.accuracy().value_or(0), ratio(static_cast<double>(exact_), n), mean.f1, mean.auc);
    text += fmt::format("{:24} {:>8} {:>9} {:>9} {:>9} {:>9}\n", "label", "samples", "precision", "recall", "F1", "AUC");
    for (std::size_t i = 0; i < shown; ++i) {
      const Label l = label(i);
      text +=
          fmt::format("{:24} {:>8} {:>9.4f} {:>9.4f} {:>9.4f} {:>9.4f}\n", name(i).substr(0, 24), outputs_[i].is, l.precision, l.recall, l.f1, l.auc);
    }
  } else {
    text = fmt::format("samples {}  loss {:.6g}  mae {:.6g}  mse {:.6g}  R2 {:.4f}\n\n", score_.samples, score_.loss(), score_.mae().value_or(0),
                       score_.mse().value_or(0), mean_r2());
    text += fmt::format("{:24} {:>12} {:>12} {:>9}\n", "output", "mae", "mse", "R2");
    for (std::size_t i = 0; i < shown; ++i) {
      const Output& o = outputs_[i];
      text += fmt::format("{:24} {:>12.6g} {:>12.6g} {:>9.4f}\n", name(i).substr(0, 24), ratio(o.absolute, n), ratio(o.squared, n), r2(o));
    }
  }
  return printable(text, 4000);
}

}  // namespace tandem::cli
