#include "tools/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <set>

#include "runtime/base/error.h"

namespace tandem::cli {
namespace {

constexpr std::int64_t kMaxDevices = 256, kMaxThreads = 1024;
constexpr const char* kGrammar = "cpu, cpu:N, cuda, cuda:0,2, cuda:all or cuda:0xN";

[[noreturn]] void refuse_devices(const std::string& text) {
  throw UsageError(fmt::format("expected {}, found \"{}\"\ndevices here: cpu", kGrammar, text));
}

// The list of ordinals of "0,2"; each once.
void check_ordinals(const std::string& list, const std::string& text) {
  std::set<std::string> seen;
  for (const std::string& item : split(list)) {
    if (item.empty()) refuse_devices(text);
    if (!seen.insert(item).second) throw UsageError(fmt::format("device {} is named twice in \"{}\"", item, text));
  }
}

[[noreturn]] void refuse_cuda(const std::string& text) {
  throw UsageError(
      fmt::format("\"{}\" needs the CUDA plugin, which this version does not have\ndevices here: cpu (cpu:N makes N logical devices of it)", text));
}

bool all_digits(const std::string& text) { return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos; }

void check_cuda_grammar(const std::string& rest, const std::string& text) {
  if (rest.empty() || rest == ":all") return;
  if (rest[0] != ':') refuse_devices(text);
  const std::string list = rest.substr(1);
  const std::size_t times = list.find('x');
  if (times != std::string::npos && all_digits(list.substr(0, times))) {
    if (!all_digits(list.substr(times + 1))) refuse_devices(text);
    return;
  }
  check_ordinals(list, text);
}

}  // namespace

std::vector<DeviceId> parse_devices(const std::string& text) {
  if (text == "cpu") return cpu_devices(1);
  if (text.starts_with("cpu:")) {
    const std::string count = text.substr(4);
    if (!all_digits(count)) refuse_devices(text);
    return cpu_devices(static_cast<int>(to_integer(count, 1, kMaxDevices)));
  }
  if (text.starts_with("cuda")) {
    check_cuda_grammar(text.substr(4), text);
    refuse_cuda(text);
  }
  if (text.starts_with("sim:") || text == "sim") {
    throw UsageError(fmt::format("\"{}\" needs the plugin of the simulator, which this version does not have\ndevices here: cpu", text));
  }
  refuse_devices(text);
}

std::vector<DeviceId> parse_gpus(const std::string& text) {
  if (text != "all" && !all_digits(text)) check_ordinals(text, text);
  refuse_cuda("--gpus " + text);
}

std::string name_of(const DeviceId& device) { return fmt::format("{}:{}", device.kind == DeviceId::Kind::kCpu ? "cpu" : "cuda", device.ordinal); }

RunOptions RunFlags::resolve(const Console& console) const {
  RunOptions options;
  if (!devices.empty() && !gpus.empty()) throw UsageError("--devices and --gpus contradict each other: give one of them");
  const auto named = [](const char* option, auto parse) {
    try {
      return parse();
    } catch (const UsageError& e) {
      throw UsageError(fmt::format("option {}: {}", option, e.message()));
    }
  };
  options.devices = !gpus.empty() ? named("--gpus", [&] { return parse_gpus(gpus); })
                                  : named("--devices", [&] { return parse_devices(devices.empty() ? "cpu" : devices); });
  const std::int64_t product = std::max<std::int64_t>(intra_op, 1) * std::max<std::int64_t>(inter_op, 1);
  if (threads > 0 && (intra_op > 0 || inter_op > 0) && product != threads) {
    throw UsageError(fmt::format("--threads {} contradicts --intra-op and --inter-op, whose product is {}", threads, product));
  }
  options.threads = static_cast<int>(threads > 0 ? threads : intra_op > 0 || inter_op > 0 ? product : 0);
  options.precision = precision == "bf16" ? Precision::kBF16 : precision == "bf16x3" ? Precision::kBF16x3 : Precision::kF32;
  options.passes = !no_passes;
  options.weights_per_device = weights == "device";
  options.split = split == "keras" ? SplitRule::kKeras : SplitRule::kBalanced;
  options.memory = MemoryPolicy::parse(memory);
  options.log = [&console](const std::string& line) { console.info(line); };
  // Here every device is the CPU: both options are kept without a difference, which is said.
  if (merge == "device") console.info("--merge device: logical CPU devices share the process's memory, and the outputs are joined there");
  if (soft_placement) console.info("--soft-placement: there is no GPU, every operator runs on the CPU");
  return options;
}

void declare_run_flags(OptionSet& o, RunFlags& flags) {
  o.group("Devices and speed");
  o.text("--devices", "LIST", flags.devices, fmt::format("{} (default: all GPUs where there are any, else cpu)", kGrammar));
  o.text("--gpus", "N|LIST|all", flags.gpus, "GPUs as Keras counts them, instead of --devices");
  const auto count = [&](const char* name, std::int64_t& value, const char* help) {
    o.integer(name, "N", value, 1, kMaxThreads, help).default_text = "";
  };
  count("--threads", flags.threads, "worker threads, a cap for everything the run does (default: what affinity and quota allow)");
  count("--intra-op", flags.intra_op, "for those who know it: with --inter-op, the product is --threads");
  count("--inter-op", flags.inter_op, "see --intra-op");
  OptionSpec& memory = o.custom(
      "--memory", "POLICY", flags.memory,
      [&flags](const std::string& text) {
        MemoryPolicy::parse(text);
        flags.memory = text;
      },
      "grow, fraction=F, limit=SIZE (8GiB, 512MB) or all");
  memory.value = [&flags] { return toml_text(flags.memory); };
  o.choice("--precision", {"f32", "bf16x3", "bf16"}, flags.precision, "arithmetic of products and activations");
  o.choice("--weights", {"cpu", "device"}, flags.weights, "one shared copy of the weights, or one on each device");
  o.choice("--merge", {"cpu", "device"}, flags.merge, "where outputs are joined: on the CPU or on the first device");
  o.choice("--split", {"balanced", "keras"}, flags.split, "how a batch is cut in shares");
  o.flag("--soft-placement", flags.soft_placement, "run operators that a GPU lacks on the CPU instead of refusing them");
  o.flag("--log-placement", flags.log_placement, "say where each node runs and how the batch is cut");
  o.flag("--no-passes", flags.no_passes, "no optimisation: no fusion, no folded weights");
  o.integer("--seed", "N", flags.seed, 0, std::numeric_limits<std::int64_t>::max(), "seed of everything that is drawn at random");
}

void declare_batch(OptionSet& o, std::int64_t& batch) {
  o.integer("--batch-size,--batch", "N", batch, 1, 1 << 20, "images at a time, over all devices together");
}

void log_placement(const RunFlags& flags, const RunOptions& options, const RunReport& report, const Console& console) {
  if (!flags.log_placement) return;
  std::vector<std::string> names;
  for (const DeviceId& d : options.devices) names.push_back(name_of(d));
  if (report.cut) {
    console.info(fmt::format("placement: the batch is cut along axis 0 over {}", fmt::join(names, ", ")));
  } else {
    console.info(fmt::format("placement: the whole batch runs on {}: {}", names.front(), report.reason));
  }
  const std::string where = report.cut ? fmt::format("{}", fmt::join(names, ",")) : names.front();
  for (const RunReport::StepReport& step : report.steps) console.info(fmt::format("placement: {} on {} ({})", step.node, where, step.implementation));
}

}  // namespace tandem::cli
