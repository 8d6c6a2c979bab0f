// Upsample (until opset 9) is Resize with asymmetric coordinates and the nearest pixel rounded down. Up to opset 6 height_scale and
// width_scale, at 7 and 8 the attribute `scales`, at 9 an operand.
#include "importer/rules.h"

namespace tandem {

void rewrite_upsample(NodeRewrite& c) {
  Attributes& a = c.attributes();
  const std::string mode = a.text("mode", "nearest");
  ValueId scales = kNoValue;
  if (c.opset >= 9) {
    scales = c.input(1);
  } else {
    std::vector<float> values;
    if (c.opset >= 7)
      values = a.reals("scales");
    else
      values = {1.0f, 1.0f, a.real("height_scale"), a.real("width_scale")};
    scales = c.add_constant(Tensor::of<float>({static_cast<std::int64_t>(values.size())}, std::span<const float>(values)), "scales");
  }
  Attributes resize;
  resize.set("mode", std::string(mode == "bilinear" ? "linear" : mode));
  resize.set("coordinate_transformation_mode", std::string("asymmetric"));
  resize.set("nearest_mode", std::string("floor"));
  c.node.op = "Resize";
  c.node.attributes = std::move(resize);
  c.node.inputs = {c.input(0), kNoValue, scales};
}

}  // namespace tandem
