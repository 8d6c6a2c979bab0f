// Runs one node on given operands, for the tests of operator families.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/plan/evaluate.h"

namespace tandem::test {

struct NodeCase {
  std::string op;
  Attributes attributes;
  std::vector<Tensor> operands;  // empty Tensor: absent
  std::size_t outputs = 1;
  std::vector<std::size_t> constant = {};  // operands that are constants of the graph (weights, steering operands); others are computed
};

// Infers and runs the node. Operands that are not constant reach the kernel as options say (layout, bf16); outputs come back plain.
std::vector<Tensor> run_node(const NodeCase&, const EvaluateOptions& options = {});

// |got - want| <= atol + rtol * |want| for every element, NaN equal to NaN, infinities equal; types and shapes equal. A failure names the
// first element that differs. For integer and bool tensors: exact.
void expect_close(const Tensor& got, const Tensor& want, double rtol = 1e-5, double atol = 1e-6);

// Shorthands.
Tensor f32(Shape shape, std::vector<float> values);
Tensor i64(Shape shape, std::vector<std::int64_t> values);
// Uniform in [-1, 1), the same for the same seed on every machine.
Tensor random_f32(Shape shape, std::uint64_t seed);

}  // namespace tandem::test
