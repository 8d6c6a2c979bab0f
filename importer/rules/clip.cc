// Clip: before opset 11 min and max are attributes.
#include "importer/rules.h"

namespace tandem {

void rewrite_clip(NodeRewrite& c) {
  std::size_t operand = 1;
  for (const char* bound : {"min", "max"}) {
    if (c.opset < 11 && c.attributes().has(bound)) {
      c.set_input(operand, c.real(c.attributes().real(bound), bound));
      c.attributes().erase(bound);
    }
    ++operand;
  }
}

}  // namespace tandem
