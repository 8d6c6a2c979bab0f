// Squeeze, Unsqueeze: before opset 13 `axes` is an attribute.
#include "importer/rules.h"

namespace tandem {

void rewrite_squeeze(NodeRewrite& c) { c.move_ints("axes", 1, 13); }

}  // namespace tandem
