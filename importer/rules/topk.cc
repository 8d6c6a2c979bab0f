// TopK: before opset 10 `k` is an attribute.
#include "importer/rules.h"

namespace tandem {

void rewrite_topk(NodeRewrite& c) {
  if (c.opset >= 10) return;
  c.set_input(1, c.ints({c.attributes().integer("k")}, "k"));
  c.attributes().erase("k");
}

}  // namespace tandem
