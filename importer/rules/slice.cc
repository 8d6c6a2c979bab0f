// Slice: before opset 10 starts, ends and axes are attributes, and there are no steps.
#include <limits>

#include "importer/rules.h"

namespace tandem {
namespace {

// Backwards to "the end of the axis" is nothing at all by the standard. ONNX Runtime takes such an end for "all the way" and reverses.
bool ends_beyond_backwards(const NodeRewrite& c) {
  const Tensor *ends = c.constant(2), *steps = c.constant(4);
  if (!ends || !steps || ends->size() != steps->size()) return false;
  const auto e = ends->to_ints(), s = steps->to_ints();
  for (std::size_t i = 0; i < e.size(); ++i) {
    if (s[i] < 0 && e[i] >= std::numeric_limits<std::int32_t>::max()) return true;
  }
  return false;
}

}  // namespace

void rewrite_slice(NodeRewrite& c) {
  c.move_ints("starts", 1, 10);
  c.move_ints("ends", 2, 10);
  c.move_ints("axes", 3, 10);
  if (ends_beyond_backwards(c)) {
    c.notes.push_back(
        "Slice with a negative step and an end beyond the axis gives nothing, as the standard says; ONNX Runtime reverses, for which the standard "
        "has the end INT64_MIN");
  }
}

}  // namespace tandem
