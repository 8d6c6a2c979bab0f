// Checks gradients against central differences of the forward graph, computed in double precision.
#pragma once

#include <vector>

#include "runtime/plan/plan.h"
#include "tests/support/node_test.h"

namespace tandem::test {

struct GradientCheck {
  double step = 1e-6;
  double f32_tolerance = 2e-4;  // of the largest gradient of the operand
  double f64_tolerance = 1e-7;  // likewise, for the same gradient graph in double
  bool f64_gradient = true;     // false: the gradient's operators have float32 kernels only
  std::size_t most = 200;       // elements of an operand that are moved; of larger ones an even choice
  PlanOptions plan = {};
};

// Outputs of the graph for these inputs, planned and run as a whole.
std::vector<Tensor> run_planned(const Graph&, const std::vector<Tensor>& inputs, const PlanOptions& options = {});

// The graph with float64 in place of float32, constants included.
Graph in_double(Graph);
Tensor in_double(const Tensor&);

// For the objective sum(r * y) over the float outputs y with fixed random r: the gradient of every float32 input (all of shape known,
// equal to inputs') against central differences.
void check_gradients(const Graph&, const std::vector<Tensor>& inputs, const GradientCheck& options = {});
// The same for one node: operands that are not constant are inputs. Float outputs beyond the first count as well.
void check_node_gradients(const NodeCase&, const GradientCheck& options = {});

}  // namespace tandem::test
