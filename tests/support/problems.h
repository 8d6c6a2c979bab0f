// Random problems for differential tests: one node, its operands, how they are handed over, and the right answer in double precision.
// A problem is determined by its number and precision alone, on every machine.
#pragma once

#include <string>

#include "tests/support/node_test.h"
#include "tests/support/reference.h"

namespace tandem::test {

struct Problem {
  std::string line;  // "problem 1234: Conv x=[1, 3, 7, 9] w=[..] strides=[2, 1] ... layout=channels-last+3"
  NodeCase node;
  EvaluateOptions options;
  reference::Array want;
};

// kBF16: activations and weights are bf16 numbers, and the answer is that of these. kBF16x3: on tiles in software.
Problem make_problem(int number, Precision precision);

// Runs it. Empty when every element is within `rtol` of double precision, where an element's size is that of the terms that were added to
// give it if those are at most 100 times larger (sums that cancel), plus half of bf16's last bit where it is stored as bf16; else what
// differs, beginning with the problem's line.
std::string failure_of(const Problem&, double rtol = 1e-4);

}  // namespace tandem::test
