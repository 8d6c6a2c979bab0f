// `tandem plan`: what a run would take and how it would be done, without running it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/base/error.h"
#include "tools/bench_train.h"
#include "tools/command.h"
#include "tools/model_inputs.h"
#include "tools/options.h"

namespace tandem::cli {
namespace {

constexpr std::size_t kShownBuffers = 8;
constexpr std::int64_t kLargestBatch = 1 << 20;

struct Options {
  std::string model, mode = "infer";
  ShapeFlags shapes;
  TrainingFlags training;
  RunFlags run;
  bool json = false;
};

// Bytes of resident memory that the process would reach.
class Peak {
 public:
  Peak(const Predictor& predictor, const Graph& graph, ShapeFlags flags, std::size_t held)
      : predictor_(predictor), graph_(graph), flags_(std::move(flags)), held_(held) {}
  RunReport report(std::int64_t batch) const {
    ShapeFlags flags = flags_;
    flags.batch = batch;
    return predictor_.plan(concrete_shapes(graph_, flags));
  }
  std::size_t of(std::int64_t batch) const { return held_ + report(batch).predicted_bytes; }

  // The largest batch that stays within `limit`; 0: not even one. Doubles, then halves the interval.
  std::int64_t largest_batch(std::size_t limit, bool cut) const {
    const std::int64_t end = cut ? kLargestBatch : 1024;  // without a cut every batch is a plan of its own
    std::int64_t fits = 0, fails = 1;
    while (fails <= end && of(fails) <= limit) {
      fits = fails;
      fails *= 2;
    }
    if (fails > end) return fits;
    while (fails - fits > 1) {
      const std::int64_t middle = fits + (fails - fits) / 2;
      (of(middle) <= limit ? fits : fails) = middle;
    }
    return fits;
  }

 private:
  const Predictor& predictor_;
  const Graph& graph_;
  const ShapeFlags flags_;
  const std::size_t held_;
};

struct Answer {
  RunReport report;
  std::vector<Shape> shapes;
  std::vector<std::string> devices;
  std::size_t held = 0, peak = 0, limit = 0;
  std::int64_t largest_batch = 0;  // 0: the model fixes the batch, or none fits
  bool dynamic = false;
};

std::string as_json(const Options& o, const Answer& a) {
  nlohmann::ordered_json j = {{"model", o.model}, {"mode", o.mode}, {"precision", o.run.precision}, {"devices", a.devices}};
  j["inputs"] = a.shapes;
  j["predicted_peak_bytes"] = a.peak;
  j["held_before_bytes"] = a.held;
  j["weights_bytes"] = a.report.weights_bytes;
  j["activation_bytes"] = a.report.activation_bytes;
  j["io_bytes"] = a.report.io_bytes;
  j["limit_bytes"] = a.limit;
  j["fits"] = a.peak <= a.limit;
  j["largest_batch"] = a.dynamic ? nlohmann::ordered_json(a.largest_batch) : nullptr;
  j["recomputed"] = nlohmann::ordered_json::array();
  j["cut"] = a.report.cut;
  j["reason"] = a.report.reason;
  j["passes"] = a.report.passes;
  j["buffers"] = nlohmann::ordered_json::array();
  for (const PlannedBuffer& b : a.report.buffers) {
    j["buffers"].push_back({{"value", b.value}, {"bytes", b.bytes}, {"first_step", b.first_step}, {"last_step", b.last_step}});
  }
  j["nodes"] = nlohmann::ordered_json::array();
  for (const RunReport::StepReport& s : a.report.steps) {
    j["nodes"].push_back({{"node", s.node}, {"op", s.op}, {"implementation", s.implementation}, {"outputs", s.outputs}});
  }
  return json_text(j);
}

std::string as_text(const Answer& a) {
  const RunReport& r = a.report;
  std::string text =
      fmt::format("predicted peak   {} of {} ({} held before, {} weights, {} activations, {} inputs and outputs)\n", format_size(a.peak),
                  format_size(a.limit), format_size(a.held), format_size(r.weights_bytes), format_size(r.activation_bytes), format_size(r.io_bytes));
  text +=
      fmt::format("per device       {}\n", a.devices.size() == 1 ? "all of it" : fmt::format("one process for {} logical devices", a.devices.size()));
  if (a.dynamic) text += fmt::format("largest batch    {}\n", a.largest_batch);
  text += fmt::format("batch            {}\n", r.cut ? "cut along axis 0" : "whole on the first device: " + r.reason);
  text += "recomputed       nothing\n";
  for (const std::string& line : r.passes) text += fmt::format("pass             {}\n", line);
  text += "largest buffers\n";
  for (std::size_t i = 0; i < std::min(kShownBuffers, r.buffers.size()); ++i) {
    text += fmt::format("  {:>10}  {}\n", format_size(r.buffers[i].bytes), r.buffers[i].value);
  }
  text += fmt::format("nodes ({})\n", r.steps.size());
  for (const RunReport::StepReport& s : r.steps) {
    text += fmt::format("  {}: {}", s.node, s.implementation.empty() ? "view" : s.implementation);
    for (const std::string& out : s.outputs) text += " -> " + out;
    text += "\n";
  }
  return printable(text, 2000);
}

const char* recomputed_text(Recompute r) {
  switch (r) {
    case Recompute::kNothing:
      return "nothing";
    case Recompute::kCheap:
      return "normalisations and activations";
    case Recompute::kDepthwise:
      return "normalisations, activations and depthwise convolutions";
    case Recompute::kBlocks:
      break;
  }
  return "everything between additions and pools";
}

int plan_training(const Options& o, const Console& console) {
  const RunOptions options = o.run.resolve(console);
  const Model model = Model::from_file(o.model);
  const auto shapes = concrete_shapes(model.graph(), o.shapes);
  RandomTraining training(model, shapes, o.training, options, static_cast<std::uint64_t>(o.run.seed), console);
  const TrainingPrediction p = training.predict();
  const std::size_t peak = training.held() + p.total();
  std::size_t limit = options.memory.limit(CpuInfo::detect().memory_bytes);
  if (limit == 0) limit = CpuInfo::detect().memory_bytes;
  if (o.json) {
    nlohmann::ordered_json j = {{"model", o.model},
                                {"mode", o.mode},
                                {"precision", o.run.precision},
                                {"inputs", shapes},
                                {"predicted_peak_bytes", peak},
                                {"held_before_bytes", training.held()},
                                {"weights_bytes", p.weights},
                                {"slots_and_reserve_bytes", p.reserve},
                                {"gradients_bytes", p.gradients},
                                {"packed_bytes", p.packed},
                                {"activation_bytes", p.arenas + p.scratch},
                                {"live_shards", p.live_shards},
                                {"io_bytes", p.batch},
                                {"limit_bytes", limit},
                                {"fits", peak <= limit},
                                {"recomputed", recomputed_text(training.recomputed())}};
    for (const PlannedBuffer& b : training.plan().buffers) j["buffers"].push_back({{"value", b.value}, {"bytes", b.bytes}});
    print(json_text(j));
  } else {
    std::string text = fmt::format(
        "predicted peak   {} of {} ({} held before, {} weights, {} slots and reserve, {} gradients, {} packed weights, {} activations of {} shards, "
        "{} inputs)\n",
        format_size(peak), format_size(limit), format_size(training.held()), format_size(p.weights), format_size(p.reserve), format_size(p.gradients),
        format_size(p.packed), format_size(p.arenas + p.scratch), p.live_shards, format_size(p.batch));
    text += fmt::format("recomputed       {}\nsegments         {}\nlargest buffers of a shard\n", recomputed_text(training.recomputed()),
                        training.plan().segment_ends.size());
    const auto& buffers = training.plan().buffers;
    for (std::size_t i = 0; i < std::min(kShownBuffers, buffers.size()); ++i)
      text += fmt::format("  {:>10}  {}\n", format_size(buffers[i].bytes), buffers[i].value);
    print(printable(text, 2000));
  }
  if (peak > limit) training.check_limit();
  return 0;
}

int run(const Options& o, const Console& console) {
  if (o.mode == "train") return plan_training(o, console);
  RunOptions options = o.run.resolve(console);
  Answer a;
  a.limit = options.memory.limit(CpuInfo::detect().memory_bytes);
  if (a.limit == 0) a.limit = CpuInfo::detect().memory_bytes;
  options.memory = MemoryPolicy();  // a plan that does not fit is shown too
  const Model model = Model::from_file(o.model);
  a.held = resident_bytes();
  const Predictor predictor(model, options);
  a.shapes = concrete_shapes(model.graph(), o.shapes);
  a.report = predictor.plan(a.shapes);
  a.peak = a.held + a.report.predicted_bytes;
  a.dynamic = has_dynamic_batch(model.graph());
  if (a.dynamic) a.largest_batch = Peak(predictor, model.graph(), o.shapes, a.held).largest_batch(a.limit, a.report.cut);
  for (const DeviceId& d : options.devices) a.devices.push_back(name_of(d));
  print(o.json ? as_json(o, a) : as_text(a));
  if (a.peak > a.limit) {
    const std::string advice = a.largest_batch > 0 ? fmt::format("a batch of {} fits", a.largest_batch) : "no batch fits";
    throw OutOfMemory(fmt::format("the run needs {}, the limit is {}: {}", format_size(a.peak), format_size(a.limit), advice), a.peak, a.held,
                      a.limit);
  }
  return 0;
}

}  // namespace

Command plan_command() {
  auto o = std::make_shared<Options>();
  return {.name = "plan",
          .summary =
              "Tells what a run would take and how it would be done: predicted peak memory, largest buffers, largest batch that fits, each "
              "node's implementation. Runs nothing.",
          .example = "tandem plan model.onnx --batch 32 --precision bf16\ntandem plan model.onnx --devices cpu:2 --memory limit=2GiB --json",
          .declare =
              [o](OptionSet& s) {
                s.positional("MODEL", o->model, "an .onnx file");
                s.choice("--mode", {"infer", "train"}, o->mode, "what to plan");
                declare_shapes(s, o->shapes);
                s.flag("--json", o->json, "print one JSON object");
                declare_training_flags(s, o->training);
                declare_run_flags(s, o->run);
              },
          .run = [o](const Console& console) { return run(*o, console); },
          .subcommands = {}};
}

}  // namespace tandem::cli
