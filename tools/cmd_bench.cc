// `tandem bench`: speed and memory of a model on inputs drawn at random.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/base/safe_file.h"
#include "runtime/memory/memory.h"
#include "tools/bench_train.h"
#include "tools/command.h"
#include "tools/model_inputs.h"
#include "tools/options.h"

namespace tandem::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string model, mode = "infer", json, profile;
  std::int64_t iterations = 10;
  ShapeFlags shapes;
  TrainingFlags training;
  RunFlags run;
};

struct Figures {
  double load_to_first = 0;
  std::vector<double> seconds;  // of each iteration, sorted
  double best() const { return seconds.front(); }
  double median() const { return seconds[seconds.size() / 2]; }
};

Figures measure(const Predictor& predictor, const std::vector<Tensor>& inputs, std::int64_t iterations) {
  Figures f;
  predictor.run(inputs);
  f.load_to_first = seconds_since_start();
  for (std::int64_t i = 0; i < iterations; ++i) {
    const auto start = Clock::now();
    predictor.run(inputs);
    f.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(f.seconds.begin(), f.seconds.end());
  return f;
}

nlohmann::ordered_json profile_json(const std::vector<RunReport::StepReport>& steps) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const auto& s : steps)
    nodes.push_back({{"node", s.node}, {"op", s.op}, {"implementation", s.implementation}, {"outputs", s.outputs}, {"ms", s.seconds * 1e3}});
  return nodes;
}

// What either mode gives.
struct Measured {
  Figures figures;
  std::vector<RunReport::StepReport> steps;
  double images = 1;
  int threads = 0;
  std::size_t predicted = 0;  // bytes of resident memory
};

Measured measure_inference(const Options& o, const Model& model, const RunOptions& options, const Console& console) {
  const std::size_t held = resident_bytes();
  const Predictor predictor(model, options);
  const auto shapes = concrete_shapes(model.graph(), o.shapes);
  const auto inputs = random_inputs(model.graph(), shapes, static_cast<std::uint64_t>(o.run.seed));
  Measured m{.figures = measure(predictor, inputs, o.iterations), .threads = predictor.threads()};
  RunReport report = predictor.plan(shapes);
  log_placement(o.run, options, report, console);
  m.predicted = held + report.predicted_bytes;
  if (!o.profile.empty()) report = predictor.profile(inputs, static_cast<int>(o.iterations));
  m.steps = std::move(report.steps);
  return m;
}

Measured measure_steps(const Options& o, const Model& model, const RunOptions& options, const Console& console) {
  RandomTraining training(model, concrete_shapes(model.graph(), o.shapes), o.training, options, static_cast<std::uint64_t>(o.run.seed), console);
  const std::size_t predicted = training.held() + training.predict().total();
  auto f = training.measure(o.iterations, !o.profile.empty());
  return {.figures = {f.load_to_first, std::move(f.seconds)}, .steps = training.report(), .threads = training.threads(), .predicted = predicted};
}

int run(const Options& o, const Console& console) {
  const RunOptions options = o.run.resolve(console);
  const Model model = Model::from_file(o.model);
  Measured m = o.mode == "train" ? measure_steps(o, model, options, console) : measure_inference(o, model, options, console);
  const auto shapes = concrete_shapes(model.graph(), o.shapes);
  if (!shapes.empty() && !shapes[0].empty()) m.images = static_cast<double>(shapes[0][0]);
  const Figures& f = m.figures;
  std::set<std::string> implementations;
  for (const auto& s : m.steps) implementations.insert(s.implementation);
  const nlohmann::ordered_json j = {{"model", o.model},
                                    {"mode", o.mode},
                                    {"precision", o.run.precision},
                                    {"batch", m.images},
                                    {"threads", m.threads},
                                    {"devices", options.devices.size()},
                                    {"img_s_best", m.images / f.best()},
                                    {"img_s_median", m.images / f.median()},
                                    {"step_ms_best", f.best() * 1e3},
                                    {"peak_rss_mb", static_cast<double>(peak_resident_bytes()) / 1e6},
                                    {"load_to_first_s", f.load_to_first},
                                    {"predicted_peak_mb", static_cast<double>(m.predicted) / 1e6},
                                    {"implementations", implementations}};
  const std::string text = json_text(j);
  if (o.json == "-")
    print(text);
  else if (!o.json.empty())
    save_file(o.json, std::string_view(text));
  if (o.json != "-") {
    print(fmt::format("{:.2f} images/s best, {:.2f} median ({:.2f} ms a batch of {}), first result after {:.2f} s, peak {:.0f} MB\n",
                      m.images / f.best(), m.images / f.median(), f.best() * 1e3, m.images, f.load_to_first,
                      static_cast<double>(peak_resident_bytes()) / 1e6));
  }
  if (!o.profile.empty()) save_file(o.profile, std::string_view(json_text(profile_json(m.steps), 1)));
  return 0;
}

}  // namespace

// By the system's clock ticks (field 22 of /proc/self/stat against /proc/uptime).
double seconds_since_start() {
  std::ifstream stat("/proc/self/stat"), uptime("/proc/uptime");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string word;
  for (int field = 3; field <= 22 && fields >> word; ++field) {
  }
  double now = 0;
  uptime >> now;
  return now - std::atof(word.c_str()) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

Command bench_command() {
  auto o = std::make_shared<Options>();
  return {.name = "bench",
          .summary = "Measures a model on random input: images per second, time to the first result, peak memory.",
          .example = "tandem bench model.onnx --batch 8 --threads 2 --json -\ntandem bench model.onnx --batch 1 --profile nodes.json",
          .declare =
              [o](OptionSet& s) {
                s.positional("MODEL", o->model, "an .onnx file");
                s.choice("--mode", {"infer", "train"}, o->mode, "what to measure");
                declare_shapes(s, o->shapes);
                s.integer("--iters,--iterations", "K", o->iterations, 1, 1000000, "measured runs, after one that is not");
                s.text("--json", "FILE", o->json, "write one JSON object; - for standard output");
                s.text("--profile", "FILE", o->profile, "write the time of each node as a JSON list");
                declare_training_flags(s, o->training);
                declare_run_flags(s, o->run);
              },
          .run = [o](const Console& console) { return run(*o, console); },
          .subcommands = {}};
}

}  // namespace tandem::cli
