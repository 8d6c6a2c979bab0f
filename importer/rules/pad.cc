// Pad: before opset 11 pads and value are attributes; at opset 1 pads are called paddings.
#include "importer/rules.h"

namespace tandem {

void rewrite_pad(NodeRewrite& c) {
  if (c.opset == 1 && c.attributes().has("paddings")) {
    c.attributes().set("pads", c.attributes().integers("paddings"));
    c.attributes().erase("paddings");
  }
  c.move_ints("pads", 1, 11);
  if (c.opset >= 11) return;
  const float value = c.attributes().real("value", 0.0f);
  c.attributes().erase("value");
  if (value != 0) c.set_input(2, c.real(value, "value"));
}

}  // namespace tandem
