// Softmax, LogSoftmax, Hardmax: before opset 13 the data are a matrix cut at `axis` (default 1), normalised over everything behind it; from 13
// along `axis` alone (default -1).
#include "importer/rules.h"

namespace tandem {

void rewrite_softmax(NodeRewrite& c) {
  if (c.opset >= 13) return;
  std::int64_t axis = c.attributes().integer("axis", 1);
  const std::int64_t rank = c.rank(0);
  if (rank >= 0) axis = normalise_axis(axis, rank);
  c.attributes().set("axis", std::int64_t{-1});
  if (axis == -1 || (rank >= 0 && axis == rank - 1)) return;
  const ValueId x = c.input(0);
  Attributes at;
  at.set("axis", axis);
  const ValueId rows = c.emit(c.node.op, {c.emit("Flatten", {x}, at)}, c.attributes());
  Node back;
  back.name = c.node.name;
  back.op = "Reshape";
  back.inputs = {rows, c.emit("Shape", {x})};
  back.outputs = c.node.outputs;
  c.node = std::move(back);
  // A shape taken from the data copies no dimension: a 0 in it is an empty dimension.
  c.attributes().set("allowzero", std::int64_t{1});
}

}  // namespace tandem
