// Resize: at opset 10 the operands are data and scales, with asymmetric coordinates and the nearest pixel rounded down; from 11 roi, scales and
// sizes. An operand with no elements is an absent one.
#include "importer/rules.h"

namespace tandem {

void rewrite_resize(NodeRewrite& c) {
  if (c.opset == 10) {
    c.node.inputs = {c.input(0), kNoValue, c.input(1)};
    c.attributes().set("coordinate_transformation_mode", std::string("asymmetric"));
    c.attributes().set("nearest_mode", std::string("floor"));
  }
  for (std::size_t i = 1; i < c.node.inputs.size(); ++i) {
    if (c.constant(i) && c.constant(i)->size() == 0) c.node.inputs[i] = kNoValue;
  }
}

}  // namespace tandem
