#include "tools/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tandem::cli {
namespace {

double ratio(double a, double b) { return b == 0 ? 0 : a / b; }

}  // namespace

// By ranks (Mann and Whitney), ties at their mean rank.
double roc_area(std::vector<std::pair<float, bool>> scored) {
  // What is no number has no rank, and a sort needs an order.
  if (std::any_of(scored.begin(), scored.end(), [](const auto& s) { return std::isnan(s.first); })) return std::numeric_limits<double>::quiet_NaN();
  std::sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  double ranks = 0, positives = 0;
  for (std::size_t i = 0; i < scored.size();) {
    std::size_t j = i;
    while (j < scored.size() && scored[j].first == scored[i].first) ++j;
    const double rank = (static_cast<double>(i + 1) + static_cast<double>(j)) / 2;
    for (; i < j; ++i) {
      ranks += scored[i].second ? rank : 0;
      positives += scored[i].second;
    }
  }
  const double negatives = static_cast<double>(scored.size()) - positives;
  if (positives == 0 || negatives == 0) return std::numeric_limits<double>::quiet_NaN();
  return (ranks - positives * (positives + 1) / 2) / (positives * negatives);
}

Metrics::Metrics(std::int64_t classes) : classes_(classes), confusion_(static_cast<std::size_t>(classes * classes), 0) {}

void Metrics::add(std::int64_t label, std::span<const float> p) {
  const double sum = std::accumulate(p.begin(), p.begin() + classes_, 0.0);
  add(label, p, -std::log(std::clamp(static_cast<double>(p[static_cast<std::size_t>(label)]) / sum, 1e-7, 1.0)));
}

void Metrics::add(std::int64_t label, std::span<const float> p, double loss) {
  ++samples_;
  labels_.push_back(label);
  scores_.insert(scores_.end(), p.begin(), p.begin() + classes_);
  if (std::any_of(p.begin(), p.begin() + classes_, [](float v) { return std::isnan(v); })) {
    ++without_prediction_;
    loss_sum_ = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  const float mine = p[static_cast<std::size_t>(label)];
  std::int64_t better = 0, top = 0;
  for (std::int64_t c = 0; c < classes_; ++c) {
    const float v = p[static_cast<std::size_t>(c)];
    if (v > p[static_cast<std::size_t>(top)]) top = c;
    if (v > mine || (v == mine && c < label)) ++better;
  }
  right_ += top == label;
  in_five_ += better < 5;
  loss_sum_ += loss;
  ++confusion_[static_cast<std::size_t>(label * classes_ + top)];
}

double Metrics::loss() const { return ratio(loss_sum_, static_cast<double>(samples_)); }
double Metrics::top1() const { return ratio(static_cast<double>(right_), static_cast<double>(samples_)); }
double Metrics::top5() const { return ratio(static_cast<double>(in_five_), static_cast<double>(samples_)); }

std::vector<Metrics::PerClass> Metrics::per_class() const {
  std::vector<PerClass> all(static_cast<std::size_t>(classes_));
  for (std::int64_t c = 0; c < classes_; ++c) {
    PerClass& m = all[static_cast<std::size_t>(c)];
    std::int64_t predicted = 0;
    for (std::int64_t o = 0; o < classes_; ++o) predicted += confused(o, c);
    m.samples = std::count(labels_.begin(), labels_.end(), c);
    const auto hits = static_cast<double>(confused(c, c));
    m.precision = ratio(hits, static_cast<double>(predicted));
    m.recall = ratio(hits, static_cast<double>(m.samples));
    m.f1 = ratio(2 * m.precision * m.recall, m.precision + m.recall);
    std::vector<std::pair<float, bool>> scored;
    for (std::size_t i = 0; i < labels_.size(); ++i)
      scored.emplace_back(scores_[i * static_cast<std::size_t>(classes_) + static_cast<std::size_t>(c)], labels_[i] == c);
    m.auc = roc_area(std::move(scored));
  }
  return all;
}

double Metrics::macro_f1() const {
  double sum = 0, n = 0;
  for (const PerClass& m : per_class()) {
    if (m.samples == 0) continue;
    sum += m.f1;
    n += 1;
  }
  return ratio(sum, n);
}

double Metrics::macro_auc() const {
  double sum = 0, n = 0;
  for (const PerClass& m : per_class()) {
    if (std::isnan(m.auc)) continue;
    sum += m.auc;
    n += 1;
  }
  return n == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / n;
}

}  // namespace tandem::cli
