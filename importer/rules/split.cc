// Split: before opset 13 the sizes are an attribute; before 18 no sizes means equal parts, as many as there are outputs.
#include "importer/rules.h"

namespace tandem {

void rewrite_split(NodeRewrite& c) {
  c.move_ints("split", 1, 13);
  if (!c.has_input(1) && !c.attributes().has("num_outputs")) c.attributes().set("num_outputs", static_cast<std::int64_t>(c.file_outputs));
}

}  // namespace tandem
