// The output folder of `tandem train`: settings, curves, weights, checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "importer/file_record.h"
#include "io/batch_source.h"
#include "io/tensorboard.h"
#include "parallel/schedule.h"
#include "parallel/trainer.h"
#include "runtime/base/file_handle.h"
#include "tools/console.h"
#include "tools/scoring.h"

namespace tandem::cli {

// One epoch: a row of summary.csv.
struct EpochRow {
  std::int64_t epoch = 0;  // from 0, as Keras' CSVLogger
  double loss = 0, rate = 0, seconds = 0, waited = 0;
  Measures measured, val_measured;
  std::optional<double> val_loss;
  double validation_seconds = 0;  // of `seconds`
  std::int64_t samples = 0;       // trained on in `seconds`
  // Name and value in the order of the names, as CSVLogger writes them.
  std::vector<std::pair<std::string, double>> values() const;
};

// What the loop needs to go on, beside the trainer's state.
struct RunState {
  std::int64_t epoch = 0, step_in_epoch = 0;  // of the next step
  std::int64_t step = 0;                      // batches so far
  io::BatchPosition position;                 // of the next batch
  bool steps_done = false;                    // of the epoch that runs: only its validation is left
  Score score;                                // of the epoch that runs
  double penalty_sum = 0;                     // likewise: each step's penalty times its samples
  double rate = 0;                            // of the last step
  std::optional<double> best;
  std::int64_t epochs_since_best = 0;
  PlateauState plateau;
  std::vector<EpochRow> history;
};

class RunFolder {
 public:
  // Makes the folder. An empty path means runs/NAME-N with the first free N; a folder that holds a run already is
  // refused; one that goes on must be there. The folder is locked as long as this lives: InvalidData where another run writes into it.
  RunFolder(std::string path, const std::string& name, bool goes_on);
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string checkpoints() const { return file("checkpoint"); }
  bool has_checkpoint() const;
  bool has(const std::string& name) const;

  void write_text(const std::string& name, const std::string& text) const;
  void write_labels(const std::vector<std::string>& labels) const;
  // summary.csv anew from all rows, and the last one to TensorBoard.
  void write_history(const std::vector<EpochRow>& rows);
  // The graph's weights for Keras; says why where they have no Keras names.
  void write_weights(const Graph& graph, const std::string& name, const Console& console) const;
  // `record`: of the file that the network came from.
  void write_model(const Graph& graph, const FileRecord& record) const;

  // Names of the classes in the last checkpoint of a folder, in the order of outputs; empty: it has none, or there is no checkpoint that can be read.
  static std::vector<std::string> labels_of(const std::string& path);
  // `settings`: what a run that goes on must agree with.
  void save(const Trainer& trainer, const RunState& state, const std::string& settings) const;
  // Puts trainer and state where the last checkpoint was. Throws InvalidData; UsageError where its settings differ, naming what differs.
  RunState restore(Trainer& trainer, const std::string& settings, const Console& console) const;

 private:
  void take();

  std::string path_;
  FileHandle lock_;
  std::optional<io::EventFile> events_;
};

}  // namespace tandem::cli
