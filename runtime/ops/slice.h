// What Slice's and Pad's kernels and their backward rules share.
#pragma once

#include <vector>

#include "runtime/ops/op.h"

namespace tandem {

struct SliceBox {
  std::vector<std::int64_t> starts, steps;  // for every axis of the operand
};

enum class PadMode { kConstant, kReflect, kEdge, kWrap };

struct Padding {
  PadMode mode;
  std::vector<std::int64_t> before, after;  // for every axis; negative ones crop
};

// A stretch of one output axis that is an arithmetic sequence of operand indices; with repeats, the sequence over and over.
struct Stretch {
  std::int64_t to, from, step, count, repeats = 1;
};
// One axis of `dim` elements in mode reflect, edge or wrap: what the output's elements are copies of.
std::vector<Stretch> stretches(PadMode, std::int64_t dim, std::int64_t before, std::int64_t after);

void slice_gradient(GradientContext&);
void pad_gradient(GradientContext&);  // CenterCropPad's as well

}  // namespace tandem
