// What `evaluate` says where targets are numbers: several classes at once (zeros and ones), or regression. Counted sample by sample.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/scoring.h"

namespace tandem::cli {

class ValueMetrics {
 public:
  // `loss`: "binary", "mse" or "mae"; `labels` of the outputs, empty: numbers.
  ValueMetrics(const Scoring& scoring, const std::string& loss, std::int64_t outputs, std::vector<std::string> labels);
  void add(std::span<const float> prediction, std::span<const float> target);

  std::int64_t samples() const { return score_.samples; }
  // The metric in short, for the log.
  std::string brief() const;
  // {"samples", "failed", "loss", and "accuracy", "exact", "f1", "auc", "labels": [{label, samples, precision, recall, f1, auc}]
  //  or "mae", "mse", "r2", "outputs": [{label, mae, mse, r2}]}. What is not defined is null.
  std::string as_json(std::int64_t failed) const;
  std::string as_text() const;

 private:
  struct Output {
    std::int64_t is = 0, says = 0, both = 0;                                // zeros and ones
    double absolute = 0, squared = 0, target_mean = 0, target_squares = 0;  // numbers: the last two by Welford
  };
  struct Label {
    double precision = 0, recall = 0, f1 = 0, auc = 0;
  };
  Label label(std::size_t output) const;
  std::string name(std::size_t output) const;
  double r2(const Output&) const;
  double mean_r2() const;
  Label mean_label() const;

  const Scoring scoring_;
  const bool yes_no_;
  const std::vector<std::string> labels_;
  Score score_;
  std::int64_t exact_ = 0;  // samples of which every output is right
  std::vector<Output> outputs_;
  std::vector<float> scores_;  // samples x outputs, for the areas
  std::vector<bool> truth_;
};

}  // namespace tandem::cli
