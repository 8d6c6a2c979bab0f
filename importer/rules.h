// The operators of the file side: since which opset ONNX has them, until when, and the rule that rewrites their older forms to opset 24.
// An operator whose form never changed has no rule. Sources of the changes: ONNX's Operators.md and Changelog.md.
#pragma once

#include <string_view>

#include "importer/node_rewrite.h"

namespace tandem {

using Rewrite = void (*)(NodeRewrite&);

struct OperatorForm {
  std::string_view name;
  std::int16_t since;
  Rewrite rewrite = nullptr;
  std::int16_t until = 25;  // last opset that has it
};

// Null when the importer does not know the operator.
const OperatorForm* find_form(std::string_view name);

// After a node's rewriting. Throws InvalidModel for an attribute that the form of opset 24 does not have and no rule took: it could change the
// answer, and nobody reads it (Clip's `max` at opset 13). Names that begin with "__" are the exporter's own, as in ONNX's checker.
void refuse_unknown_attributes(const Node& node, std::int64_t opset);

// One rule a file in importer/rules/.
void rewrite_arithmetic(NodeRewrite&);
void rewrite_batch_normalization(NodeRewrite&);
void rewrite_cast(NodeRewrite&);
void rewrite_cast_like(NodeRewrite&);
void rewrite_clip(NodeRewrite&);
void rewrite_constant(NodeRewrite&);
void rewrite_constant_of_shape(NodeRewrite&);
void rewrite_dequantize(NodeRewrite&);
void rewrite_dropout(NodeRewrite&);
void rewrite_gemm(NodeRewrite&);
void rewrite_group_normalization(NodeRewrite&);
void rewrite_identity(NodeRewrite&);
void rewrite_pad(NodeRewrite&);
void rewrite_prelu(NodeRewrite&);
void rewrite_reduce(NodeRewrite&);
void rewrite_reshape(NodeRewrite&);
void rewrite_concat(NodeRewrite&);
void rewrite_resize(NodeRewrite&);
void rewrite_slice(NodeRewrite&);
void rewrite_softmax(NodeRewrite&);
void rewrite_split(NodeRewrite&);
void rewrite_squeeze(NodeRewrite&);
void rewrite_topk(NodeRewrite&);
void rewrite_upsample(NodeRewrite&);

}  // namespace tandem
