// The options of `tandem train`, and what a run keeps of them.
#pragma once

#include <cstdint>
#include <string>

#include "io/batch_source.h"
#include "tools/option_set.h"
#include "tools/options.h"
#include "tools/preprocess_flags.h"
#include "tools/train_loop.h"
#include "tools/train_setup.h"

namespace tandem::cli {

struct TrainOptions {
  std::string model, data, val_data, output, resume, augment, class_weights, bad_files = "stop", checkpoint_every = "1epoch", on_nan = "stop",
                                                                             strategy = "mirrored", schedule = "constant";
  std::int64_t batch = 32, workers = 0;
  double val_split = 0, label_smoothing = 0, warmup_epochs = 0, min_rate = 0;
  bool no_shuffle = false, exif = false;
  bool validates = false;  // no option: there is data for it
  LoopOptions loop;
  TrainingFlags training;
  PreprocessFlags preprocess;
  RunFlags run;
};
void declare_train_options(OptionSet&, TrainOptions&);

// --checkpoint-every: "500" (steps), "2epochs". Throws UsageError.
void set_checkpoints(const std::string& text, LoopOptions& loop);

// What a run that goes on must agree with, as a JSON object: everything that decides bits. Devices and threads do not.
std::string settings_of(const TrainOptions&, const TrainSetup&, const io::BatchOptions&, std::int64_t samples);
// The options with what they came to in the place of defaults and "auto": given back they make the same run.
TrainOptions resolved(TrainOptions, const TrainSetup&, const io::Preprocess&, const RunOptions&, int threads);
// All of them but --output and --resume, as a file for --config.
std::string args_toml(TrainOptions, const TrainSetup&);

}  // namespace tandem::cli
