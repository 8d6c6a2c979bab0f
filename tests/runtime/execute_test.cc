#include "runtime/plan/execute.h"

#include <gtest/gtest.h>

#include <new>

namespace tandem {
namespace {

// The other members must not wait for a phase that never opens.
TEST(RunTogether, EndsForAllWhenATaskThrowsWhatIsNoErrorOfOurs) {
  Plan plan;
  Step step;
  step.kernel.stages.push_back({16, [](const KernelArgs&, int task) {
                                  if (task == 5) throw std::bad_alloc();
                                }});
  plan.steps.push_back(step);
  const PackedWeights weights;
  MappedMemory memory;
  TaskPool pool(3);
  std::vector<WorkerSpace> spaces;
  for (int i = 0; i < pool.threads(); ++i) spaces.emplace_back(memory);
  EXPECT_THROW(run_together({&plan, &weights, nullptr, {}, {}}, pool, spaces), std::bad_alloc);
}

}  // namespace
}  // namespace tandem
