// Concat: before opset 4 `axis` may be left out and is 1.
#include "importer/rules.h"

namespace tandem {

void rewrite_concat(NodeRewrite& c) {
  if (c.opset < 4 && !c.attributes().has("axis")) c.attributes().set("axis", std::int64_t{1});
}

}  // namespace tandem
