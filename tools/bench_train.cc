#include "tools/bench_train.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "runtime/base/philox.h"
#include "tools/model_inputs.h"

namespace tandem::cli {
namespace {

using Clock = std::chrono::steady_clock;

TrainSetup setup_of(const Model& model, TrainingFlags flags, const RunOptions& options, const CpuInfo& cpu, std::uint64_t seed,
                    const Console& console) {
  TrainSetup setup = make_setup(model.graph(), {.names = {}, .count = outputs_of(model.graph()), .values = {}}, flags, seed, console);
  set_run_options(setup, flags, options, cpu);
  return setup;
}

}  // namespace

RandomTraining::RandomTraining(const Model& model, std::vector<Shape> shapes, const TrainingFlags& flags, const RunOptions& options,
                               std::uint64_t seed, const Console& console)
    : shapes_(std::move(shapes)),
      held_(resident_bytes()),
      cpu_(CpuInfo::detect()),
      setup_(setup_of(model, flags, options, cpu_, seed, console)),
      pool_(options.threads > 0 ? options.threads : cpu_.default_threads()),
      trainer_(setup_.graph, setup_.options, pool_, cpu_),
      batch_(random_batch(seed)) {}

TrainingBatch RandomTraining::random_batch(std::uint64_t seed) const {
  const std::int64_t samples = shapes_.at(0).at(0);
  TrainingBatch batch{.inputs = random_inputs(*setup_.graph, shapes_, seed)};
  batch.target = Tensor(DType::kF32, {samples, setup_.outputs});
  batch.weight = Tensor(DType::kF32, {samples});
  PhiloxStream labels(seed, Purpose::kShuffle, 0, 0);
  for (std::int64_t s = 0; s < samples; ++s) {
    batch.target.as_mutable<float>()[static_cast<std::size_t>(s * setup_.outputs + labels.below(static_cast<std::uint32_t>(setup_.outputs)))] = 1;
    batch.weight.as_mutable<float>()[static_cast<std::size_t>(s)] = 1;
  }
  return batch;
}

RandomTraining::Figures RandomTraining::measure(std::int64_t iterations, bool profile) {
  Figures figures;
  const auto rate = static_cast<float>(setup_.rate);
  trainer_.step(batch_, rate);
  figures.load_to_first = seconds_since_start();
  for (std::int64_t i = 0; i < iterations; ++i) {
    if (profile && i + 1 == iterations) trainer_.group().set_profile(&times_);
    const auto start = Clock::now();
    batch_.step = i + 1;
    trainer_.step(batch_, rate);
    figures.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  trainer_.group().set_profile(nullptr);
  std::sort(figures.seconds.begin(), figures.seconds.end());
  return figures;
}

std::vector<RunReport::StepReport> RandomTraining::report() {
  auto steps = steps_of(plan());
  for (std::size_t i = 0; i < std::min(steps.size(), times_.size()); ++i) steps[i].seconds = times_[i];
  return steps;
}

}  // namespace tandem::cli
