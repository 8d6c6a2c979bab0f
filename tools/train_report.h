// report.html of `tandem train`: one self-contained page about a run, written anew after each epoch.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/dataset.h"
#include "parallel/shard_group.h"
#include "tools/run_folder.h"
#include "tools/scoring.h"
#include "tools/train_memory.h"

namespace tandem::cli {

// Collects the last validation pass. Memory grows with the pairs of classes that are mistaken for each other, not with the samples.
class TrainReport {
 public:
  struct About {
    std::string model;
    std::vector<std::pair<std::string, std::string>> settings;  // shown as they are
    std::vector<std::string> labels;                            // of the network's classes; empty: numbers
    std::int64_t classes = 0;                                   // that labels of samples tell apart; 0: targets are values
    std::optional<float> yes_above = {};                        // targets are zeros and ones for each output, which says yes above it
    std::shared_ptr<const io::Dataset> validation;              // null: none
    std::vector<std::string> devices;
    int threads = 1;          // that the devices share
    std::int64_t shards = 1;  // of a whole batch
    TrainMemory memory;
    TrainingPrediction step;  // what memory.step consists of
  };
  // What the steps of this process took so far.
  struct Use {
    double seconds = 0, waited = 0;  // with the wait for data
    std::vector<DeviceUse> devices;
  };
  explicit TrainReport(About about) : about_(std::move(about)) {}

  // A validation pass begins: the page will be about it, unless it is dropped for the one before.
  void start_pass();
  void drop_pass();
  void take(const ScoredSample&);

  // The page; `state` is text. Reads the images of the worst mistakes again; what cannot be read any more has no picture.
  std::string html(const std::vector<EpochRow>& history, const Use& use, std::string_view state) const;

 private:
  struct Counts {
    std::int64_t samples = 0, predicted = 0, right = 0;
  };
  struct Mistake {
    std::int64_t index, label, predicted;
    double probability, loss;
    std::string target, prediction;  // where targets are values
  };
  static bool is_worse(const Mistake&, const Mistake&);
  std::string label(std::int64_t output) const;
  std::string key_figures(const std::vector<EpochRow>& history, std::string_view state) const;
  std::string devices(const Use& use) const;
  std::string memory() const;
  std::string settings() const;
  std::string classes() const;
  void count_labels(const ScoredSample&);
  std::string matrix() const;
  std::string confused_pairs() const;
  std::string worst() const;
  std::string tile(const Mistake&) const;

  const About about_;
  struct Pass {
    std::int64_t samples = 0;
    std::map<std::int64_t, Counts> by_class;
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> confused;  // truth, prediction: how often, without the right ones
    std::vector<Mistake> worst;                                              // a heap, the least bad on top
  };
  Pass pass_, before_;
};

}  // namespace tandem::cli
