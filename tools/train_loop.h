// The epochs of `tandem train`: steps, progress, validation, files of the run folder, stopping and going on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "io/batch_source.h"
#include "parallel/schedule.h"
#include "parallel/trainer.h"
#include "tools/console.h"
#include "tools/run_folder.h"
#include "tools/scoring.h"
#include "tools/step_log.h"
#include "tools/tandem.h"
#include "tools/train_report.h"

namespace tandem::cli {

struct LoopOptions {
  std::int64_t epochs = 1, steps_per_epoch = 0;  // 0: a pass over the data
  bool repeat = false;                           // epochs go on in the data where the one before ended
  std::uint64_t seed = 0;
  std::int64_t early_stopping = 0;  // epochs without a better monitored value; 0: never
  std::string monitor;              // "val_loss"; empty: val_loss where there is validation, else loss
  bool save_best = false;
  std::int64_t checkpoint_steps = 0, checkpoint_epochs = 1;  // 0: not by it
  bool stop_on_nan = true;                                   // false: such a batch is passed over
  bool averaged = false;                                     // weights files hold the moving average
  Schedule schedule;
  std::string settings;  // JSON object: what a run that goes on must agree with
  std::string log;       // file that gets one JSON object a step (step_log.h); empty: none
};

// The loss or the gradient is no number: exit code 1.
class NotFinite : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Asked after each step and each batch of a validation: what a signal wants.
enum class Wish { kGoOn, kSave, kStop };

class TrainLoop {
 public:
  // All must outlive the loop. `validation` may be null.
  TrainLoop(Trainer& trainer, io::BatchSource& source, io::BatchSource* validation, const Scoring& scoring, RunFolder& folder, TrainReport& report,
            const RunOptions& run, TaskPool& pool, LoopOptions options, const Console& console);

  // Puts the loop where a checkpoint was saved.
  void resume(const RunState& state);
  // Runs to the end, or until `wish` says stop (false: the state was saved). Throws NotFinite naming the step whose loss or gradient is no number;
  // the weights are then those before it.
  bool run(const std::function<Wish()>& wish);

  const std::vector<EpochRow>& history() const { return state_.history; }
  // Of the steps of this process.
  TrainReport::Use use() const;
  std::int64_t passed_over() const { return passed_over_; }  // batches whose loss or gradient was no number

 private:
  bool run_epoch(const std::function<Wish()>& wish);
  void step(const io::Batch& batch);
  // False: stopped by a signal.
  bool end_epoch(const std::function<Wish()>& wish);
  bool validate_epoch(EpochRow& row, const std::function<Wish()>& wish, bool& save_wanted);
  bool stops_early() const;
  double loss_of_epoch() const;  // so far
  void look_for_best(const EpochRow& row);
  std::optional<double> monitored_value(const EpochRow& row) const;
  float rate() const;
  void log_step(const StepReport& report, double seconds);
  void save();
  void write_report(std::string_view state);
  [[noreturn]] void stop(const std::string& what) const;
  void say_progress(bool last, const EpochRow* row = nullptr);
  void say_damaged(const io::BatchSource&);
  double busy_seconds() const;
  double waited() const { return source_.waited_seconds() + kept_from_steps_; }
  std::int64_t steps_of_epoch() const;
  std::string monitored() const;

  Trainer& trainer_;
  io::BatchSource& source_;
  io::BatchSource* validation_;
  const Scoring& scoring_;
  RunFolder& folder_;
  TrainReport& report_;
  const RunOptions& run_;
  TaskPool& pool_;
  const LoopOptions options_;
  const Console& console_;
  std::optional<StepLog> log_;
  RunState state_;  // what a checkpoint keeps beside the trainer's own state
  double epoch_started_ = 0, waited_before_ = 0, shown_ = 0;
  double kept_from_steps_ = 0;  // seconds for which decoding kept the threads of a step
  double step_seconds_ = 0;     // of all steps, with the wait for their data
  std::set<std::pair<const io::BatchSource*, std::int64_t>> damaged_said_;
  std::int64_t steps_before_ = 0, samples_before_ = 0;  // of the epoch, in an earlier process
  std::int64_t passed_over_ = 0;
  bool ended_epoch_ = false;  // in this process
  bool saved_ = false;        // the last checkpoint is of this state
  bool said_nan_ = false;
};

}  // namespace tandem::cli
