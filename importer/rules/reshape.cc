// Reshape: before opset 5 `shape` is an attribute.
#include "importer/rules.h"

namespace tandem {

void rewrite_reshape(NodeRewrite& c) { c.move_ints("shape", 1, 5); }

}  // namespace tandem
