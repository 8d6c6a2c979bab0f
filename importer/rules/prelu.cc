// PRelu: before opset 7 a slope of more than one element holds one value for each channel.
#include "importer/rules.h"
#include "importer/rules/align.h"

namespace tandem {

void rewrite_prelu(NodeRewrite& c) {
  if (c.opset >= 7) return;
  const bool per_channel = c.rank(1) == 1 && !(c.constant(1) && c.constant(1)->size() == 1);
  if (per_channel && c.rank(0) != 1) align_operand(c, 1, 1);
}

}  // namespace tandem
