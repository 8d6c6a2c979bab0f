// Gemm: before opset 7 C is broadcast only where `broadcast` says so; numpy's rule includes both.
#include "importer/rules.h"

namespace tandem {

void rewrite_gemm(NodeRewrite& c) { c.attributes().erase("broadcast"); }

}  // namespace tandem
