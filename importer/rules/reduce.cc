// Reductions: before opset 18 (ReduceSum: 13) `axes` is an attribute.
#include <fmt/format.h>

#include "importer/rules.h"
#include "runtime/base/error.h"

namespace tandem {

void rewrite_reduce(NodeRewrite& c) {
  const std::int64_t since = c.node.op == "ReduceSum" ? 13 : 18;
  if (c.opset < since && c.attributes().has("noop_with_empty_axes")) {
    throw InvalidModel(
        fmt::format("{} has the form of opset {} (axes as a second input, noop_with_empty_axes) in a model of opset {}: a version "
                    "converter left it half converted; export the model at opset {} or later",
                    c.node.op, since, c.opset, since));
  }
  c.move_ints("axes", 1, since);
}

}  // namespace tandem
