// Classification metrics over a whole set: counted sample by sample, so that they do not depend on batches or devices.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tandem::cli {

// Area under the ROC curve of scores with their truth, ties count half; NaN without both kinds or where a score is.
double roc_area(std::vector<std::pair<float, bool>> scored);

class Metrics {
 public:
  explicit Metrics(std::int64_t classes);
  // `probabilities`: one for each class. loss: -log of the true class's share of their sum, cut to [1e-7, 1] as Keras does. Where one is NaN nothing
  // is predicted: the sample is wrong, not in the confusion, and the loss of the whole is NaN.
  void add(std::int64_t label, std::span<const float> probabilities);
  // The same with another loss.
  void add(std::int64_t label, std::span<const float> probabilities, double loss);

  std::int64_t samples() const { return samples_; }
  std::int64_t without_prediction() const { return without_prediction_; }
  double loss() const;
  double top1() const;
  double top5() const;
  std::int64_t confused(std::int64_t truth, std::int64_t predicted) const {
    return confusion_[static_cast<std::size_t>(truth * classes_ + predicted)];
  }
  struct PerClass {
    std::int64_t samples = 0;
    double precision = 0, recall = 0, f1 = 0, auc = 0;  // auc: one against the rest, ties count half; NaN without both kinds or with a score that is
  };
  std::vector<PerClass> per_class() const;
  // Means over the classes that have samples.
  double macro_f1() const;
  double macro_auc() const;

 private:
  const std::int64_t classes_;
  std::int64_t samples_ = 0, right_ = 0, in_five_ = 0, without_prediction_ = 0;
  double loss_sum_ = 0;
  std::vector<std::int64_t> confusion_, labels_;
  std::vector<float> scores_;  // samples x classes, for the areas
};

}  // namespace tandem::cli
