// For the tests of operators that take any layout: short tensors, and one check that layouts and 16-bit storage change nothing.
#pragma once

#include <initializer_list>

#include "tests/support/node_test.h"

namespace tandem::test {

template <class T>
Tensor typed(Shape shape, std::initializer_list<T> values) {
  return Tensor::of<T>(std::move(shape), std::span<const T>(values.begin(), values.size()));
}
Tensor bools(Shape shape, std::initializer_list<bool> values);

// Runs the case plain, channels-last and channels-last with a gap between pixels; all outputs must be the same bits.
void expect_layouts_agree(const NodeCase&);
// Runs the case on operands that bf16 holds exactly; with bf16 storage every float output must be the plain one rounded to bf16.
void expect_bf16_storage_rounds_once(NodeCase);

// The only output of op(operands).
Tensor apply_op(const std::string& op, std::vector<Tensor> operands, Attributes attributes = {});

}  // namespace tandem::test
