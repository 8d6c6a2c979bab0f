#include "runtime/plan/execute.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/base/error.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::size_t end_of(const Run& run) { return std::min(run.end_step, run.plan->steps.size()); }

const void* readable(const Run& run, const Place& p) {
  switch (p.kind) {
    case Place::Kind::kArena:
      return run.arena + p.at;
    case Place::Kind::kInput:
      return run.inputs[p.at];
    case Place::Kind::kOutput:
      return run.outputs[p.at];
    case Place::Kind::kConstant:
      return run.plan->constants[p.at].data();
    case Place::Kind::kNone:
      break;
  }
  return nullptr;
}

void* writable(const Run& run, const Place& p) {
  if (p.kind == Place::Kind::kArena) return run.arena + p.at;
  return p.kind == Place::Kind::kOutput ? run.outputs[p.at] : nullptr;
}

KernelArgs arguments(const Run& run, const Step& step, WorkerSpace& space) {
  for (std::size_t i = 0; i < step.in.size(); ++i) space.in[i] = readable(run, step.in[i]);
  for (std::size_t i = 0; i < step.out.size(); ++i) space.out[i] = writable(run, step.out[i]);
  return {space.in.data(), space.out.data(), run.weights->pointers(step), space.scratch(), run.arena + step.shared_at};
}

// One stage of one step, as the team sees it.
struct Phase {
  const Step* step;
  const Stage* stage;
  std::size_t index;  // of the step
};

// A team works through the phases: `ticket` holds (phase, next task); who finishes a phase's last task opens the next.
struct Team {
  std::vector<Phase> phases;
  std::atomic<std::uint64_t> ticket{0};
  std::atomic<int> done{0};

  std::uint64_t last() const { return phases.size(); }
  void open(std::uint64_t phase) {
    done.store(0, std::memory_order_relaxed);
    ticket.store(phase << 32, std::memory_order_release);
  }
};

void wait_for_next(const Team& team, std::uint64_t phase) {
  for (int spins = 0; team.ticket.load(std::memory_order_acquire) >> 32 == phase; ++spins) {
    if (spins < 4096)
      _mm_pause();
    else
      std::this_thread::yield();
  }
}

// A member's part in the run. Returns when the last phase is done or another member failed.
void take_part(const Run& run, Team& team, WorkerSpace& space, StepTimes* times, Clock::time_point& phase_start) {
  std::uint64_t known = ~std::uint64_t{0};
  KernelArgs args{};
  for (;;) {
    const std::uint64_t ticket = team.ticket.fetch_add(1, std::memory_order_acq_rel), phase = ticket >> 32;
    if (phase >= team.last()) return;
    const Phase& p = team.phases[phase];
    const auto task = static_cast<std::int64_t>(ticket & 0xffffffffu);
    if (task >= p.stage->tasks) {
      wait_for_next(team, phase);
      continue;
    }
    if (phase != known) args = arguments(run, *p.step, space);
    known = phase;
    p.stage->run(args, static_cast<int>(task));
    if (team.done.fetch_add(1, std::memory_order_acq_rel) + 1 == p.stage->tasks) {
      if (times) {
        (*times)[p.index] += since(phase_start);
        phase_start = Clock::now();
      }
      team.open(phase + 1);
    }
  }
}

}  // namespace

void WorkerSpace::fit(const Plan& plan) {
  if (scratch_.bytes() < plan.scratch_bytes + 64) scratch_ = Buffer(memory_, plan.scratch_bytes + 64);
  in.resize(std::max(in.size(), plan.max_operands));
  out.resize(std::max(out.size(), plan.max_operands));
}

void run_alone(const Run& run, WorkerSpace& space, StepTimes* times) {
  for (std::size_t s = run.first_step; s < end_of(run); ++s) {
    const Step& step = run.plan->steps[s];
    const auto start = times ? Clock::now() : Clock::time_point();
    const KernelArgs args = arguments(run, step, space);
    with_context([&] { return step.node; },
                 [&] {
                   for (const Stage& stage : step.kernel.stages) {
                     for (int t = 0; t < stage.tasks; ++t) stage.run(args, t);
                   }
                 });
    if (times) (*times)[s] += since(start);
  }
}

void run_together(const Run& run, TaskPool& pool, std::span<WorkerSpace> spaces, StepTimes* times) {
  Team team;
  for (std::size_t s = run.first_step; s < end_of(run); ++s) {
    for (const Stage& stage : run.plan->steps[s].kernel.stages) {
      if (stage.tasks > 0) team.phases.push_back({&run.plan->steps[s], &stage, s});
    }
  }
  auto phase_start = Clock::now();
  pool.gang([&](int worker) {
    try {
      spaces[static_cast<std::size_t>(worker)].fit(*run.plan);
      take_part(run, team, spaces[static_cast<std::size_t>(worker)], times, phase_start);
    } catch (Error& e) {
      const auto phase = team.ticket.load() >> 32;
      if (phase < team.last()) e.add_context(team.phases[phase].step->node);
      team.open(team.last());
      throw;
    } catch (...) {
      team.open(team.last());
      throw;
    }
  });
}

}  // namespace tandem
