// What a batch consists of: samples as they are loaded and changed, targets, weights, mixing. Internal to io (batch_source.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "io/batch_source.h"

namespace tandem::io {

class BatchContent {
 public:
  struct Sample {
    std::int64_t index;
    std::vector<float> values;
  };

  // Checks the options and the labels of all `members`; throws as BatchSource. `data` and `options` must outlive it.
  BatchContent(const Dataset& data, const BatchOptions& options, std::span<const std::int64_t> members);

  // Sample `index` as the network takes it, augmented for this pass. Safe from any thread.
  void load(std::int64_t index, std::int64_t pass, std::span<float> out) const;
  // The tensors of a batch, `at`, `first` and `ends_pass` left open.
  Batch assembled(std::vector<Sample> samples, std::int64_t pass) const;

 private:
  void check_augmentation() const;
  void check_class_weights(std::int64_t classes) const;
  void check_targets(std::span<const std::int64_t> members);
  std::int64_t label(std::int64_t index) const;
  void write_target(std::int64_t index, std::span<float> out) const;
  float weight(std::int64_t index) const;
  void mix_sample(std::span<const Sample> samples, std::size_t place, const Mix&, std::span<float> out) const;

  const Dataset& data_;
  const BatchOptions& o_;
  std::size_t width_ = 0;                        // numbers of a target
  std::int64_t classes_ = 0;                     // 0: targets are values
  int height_ = 0, columns_ = 0, channels_ = 0;  // of samples with three dimensions
  InputLayout layout_ = InputLayout::kNhwc;
  std::vector<float> mean_;  // of a canvas, what erasing leaves
  float border_ = 0;
};

}  // namespace tandem::io
