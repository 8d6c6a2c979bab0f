// Training without data: `tandem bench --mode train` and `tandem plan --mode train`.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/tandem.h"
#include "tools/train_setup.h"

namespace tandem::cli {

// A network that is trained on images drawn at random: what bench measures and plan plans.
class RandomTraining {
 public:
  // `shapes`: of a batch. Every parameter is trained unless flags freeze it.
  RandomTraining(const Model& model, std::vector<Shape> shapes, const TrainingFlags& flags, const RunOptions& options, std::uint64_t seed,
                 const Console& console);

  struct Figures {
    double load_to_first = 0;     // seconds from the start of the process
    std::vector<double> seconds;  // of each step, sorted
  };
  // `iterations` steps, after one that is not measured. With `profile` the last one's time by node goes to report().
  Figures measure(std::int64_t iterations, bool profile);

  TrainingPrediction predict() { return trainer_.predict(shapes_); }
  void check_limit() { trainer_.group().check_limit(shapes_); }  // throws OutOfMemory naming what fits
  std::size_t held() const { return held_; }                     // resident bytes before
  int threads() const { return pool_.threads(); }
  // Nodes of a shard, with their seconds where they were measured.
  std::vector<RunReport::StepReport> report();
  const Plan& plan() { return trainer_.group().plan(shapes_); }
  Recompute recomputed() { return trainer_.group().recomputed(); }

 private:
  TrainingBatch random_batch(std::uint64_t seed) const;
  const std::vector<Shape> shapes_;
  const std::size_t held_;
  const CpuInfo cpu_;
  TrainSetup setup_;
  TaskPool pool_;
  Trainer trainer_;
  TrainingBatch batch_;
  StepTimes times_;
};

// Since this process was started.
double seconds_since_start();

}  // namespace tandem::cli
