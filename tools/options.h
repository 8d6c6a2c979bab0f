// Options that several commands share, parsed once into plain structs.
#pragma once

#include <string>
#include <vector>

#include "tools/console.h"
#include "tools/option_set.h"
#include "tools/tandem.h"

namespace tandem::cli {

// --devices: "cpu", "cpu:4", "cuda", "cuda:0,2", "cuda:all", "cuda:0x4". Throws UsageError for what the grammar does not know, for duplicates,
// and for devices that are not there, listing what is.
std::vector<DeviceId> parse_devices(const std::string& text);
// --gpus as in Keras: a number, a list or "all".
std::vector<DeviceId> parse_gpus(const std::string& text);
// "cpu:1".
std::string name_of(const DeviceId&);

// What every command that runs a model takes.
struct RunFlags {
  std::string devices, gpus;                             // empty: all GPUs where there are any, else the CPU
  std::int64_t threads = 0, intra_op = 0, inter_op = 0;  // 0: not given
  std::string memory = "grow", weights = "cpu", merge = "cpu", split = "balanced", precision = "f32";
  bool soft_placement = false, log_placement = false, no_passes = false;
  std::int64_t seed = 0;

  // As the library takes it; warnings of the run go to the console. Throws UsageError for options that contradict each other.
  RunOptions resolve(const Console&) const;
};
void declare_run_flags(OptionSet&, RunFlags&);
// --batch-size and --batch: the same everywhere.
void declare_batch(OptionSet&, std::int64_t& batch);

// Says where each node runs and how the batch is cut (--log-placement).
void log_placement(const RunFlags&, const RunOptions&, const RunReport&, const Console&);

}  // namespace tandem::cli
