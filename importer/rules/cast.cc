// Cast: `to` was a string in opsets 1 to 5 (some exporters still write it). CastLike is Cast to a type that the file tells. Half precision is
// widened inside the graph: a cast to it keeps its rounding and comes back to float32.
#include <algorithm>
#include <cctype>

#include "importer/rules.h"
#include "importer/tensor_wire.h"
#include "runtime/base/error.h"

namespace tandem {
namespace {

constexpr std::int64_t kFloat32 = 1;

std::int64_t target_of(const Attributes& a) {
  for (const auto& [name, value] : a) {
    const auto* text = name == "to" ? std::get_if<std::string>(&value) : nullptr;
    if (!text) continue;
    std::string lower = *text;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char ch) { return static_cast<char>(std::tolower(ch)); });
    if (lower == "float") return kFloat32;
    if (lower == "double") return dtype_to_onnx(DType::kF64);
    for (int t = 1; t <= static_cast<int>(DType::kBool); ++t) {
      if (name_of(static_cast<DType>(t)) == lower) return dtype_to_onnx(static_cast<DType>(t));
    }
    throw Unsupported("a cast to the element type \"" + lower.substr(0, 64) + "\" is not supported");
  }
  return a.integer("to");
}

void cast_to(NodeRewrite& c, DType to) {
  c.node.op = "Cast";
  c.node.inputs.resize(1);
  c.attributes().set("to", dtype_to_onnx(to));
  if (to != DType::kF16 && to != DType::kBF16) return;
  if (c.type(0) == to) {
    c.node.op = "Identity";
    c.node.attributes = {};
    return c.set_output_type(to);
  }
  const ValueId rounded = c.emit("Cast", {c.input(0)}, c.attributes());
  c.node.inputs = {rounded};
  c.node.attributes = {};
  c.attributes().set("to", kFloat32);
  c.set_output_type(to);
}

}  // namespace

void rewrite_cast(NodeRewrite& c) { cast_to(c, dtype_from_onnx(target_of(c.attributes()))); }

void rewrite_cast_like(NodeRewrite& c) {
  const DType to = c.type(1);
  if (to != DType::kNone) cast_to(c, to);
}

}  // namespace tandem
