// Add, Sub, Mul, Div, Pow and the comparisons: before opset 7 attributes `broadcast` and `axis` instead of numpy's broadcasting.
#include "importer/rules.h"
#include "importer/rules/align.h"

namespace tandem {

void rewrite_arithmetic(NodeRewrite& c) {
  if (c.opset >= 7) return;
  const bool broadcast = c.attributes().integer("broadcast", 0) != 0, placed = c.attributes().has("axis");
  const std::int64_t axis = c.attributes().integer("axis", 0);
  c.attributes().erase("broadcast");
  c.attributes().erase("axis");
  // Without an axis operand 1 fits the end of operand 0: numpy's rule. Without broadcast both shapes are equal: also numpy's rule.
  if (broadcast && placed) align_operand(c, 1, axis);
}

}  // namespace tandem
