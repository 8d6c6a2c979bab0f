// Slice: before opset 10 starts, ends and axes are attributes, and there are no steps.
#include "importer/rules.h"

namespace tandem {

void rewrite_slice(NodeRewrite& c) {
  c.move_ints("starts", 1, 10);
  c.move_ints("ends", 2, 10);
  c.move_ints("axes", 3, 10);
}

}  // namespace tandem
