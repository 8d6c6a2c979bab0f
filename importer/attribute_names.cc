// Names of attributes, from ONNX's Operators.md at opset 24.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "importer/rules.h"
#include "importer/words.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem {
namespace {

struct AttributeNames {
  std::string_view op, names;  // separated by blanks
};

// Sorted by operator; one that is not here has no attributes.
constexpr AttributeNames kNames[] = {
    {"ArgMax", "axis keepdims select_last_index"},
    {"ArgMin", "axis keepdims select_last_index"},
    {"AveragePool", "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides"},
    {"BatchNormalization", "epsilon momentum training_mode"},
    {"Cast", "round_mode saturate to"},
    {"CastLike", "round_mode saturate"},
    {"Celu", "alpha"},
    {"CenterCropPad", "axes"},
    {"Concat", "axis"},
    {"Constant", "sparse_value value value_float value_floats value_int value_ints value_string value_strings"},
    {"ConstantOfShape", "value"},
    {"Conv", "auto_pad dilations group kernel_shape pads strides"},
    {"ConvInteger", "auto_pad dilations group kernel_shape pads strides"},
    {"ConvTranspose", "auto_pad dilations group kernel_shape output_padding output_shape pads strides"},
    {"CumSum", "exclusive reverse"},
    {"DepthToSpace", "blocksize mode"},
    {"DequantizeLinear", "axis block_size output_dtype"},
    {"Dropout", "seed"},
    {"Elu", "alpha"},
    {"Flatten", "axis"},
    {"Gather", "axis"},
    {"GatherElements", "axis"},
    {"GatherND", "batch_dims"},
    {"Gelu", "approximate"},
    {"Gemm", "alpha beta transA transB"},
    {"GroupNormalization", "epsilon num_groups stash_type"},
    {"HardSigmoid", "alpha beta"},
    {"Hardmax", "axis"},
    {"If", "else_branch then_branch"},
    {"InstanceNormalization", "epsilon"},
    {"IsInf", "detect_negative detect_positive"},
    {"LRN", "alpha beta bias size"},
    {"LayerNormalization", "axis epsilon stash_type"},
    {"LeakyRelu", "alpha"},
    {"LogSoftmax", "axis"},
    {"LpNormalization", "axis p"},
    {"LpPool", "auto_pad ceil_mode dilations kernel_shape p pads strides"},
    {"MaxPool", "auto_pad ceil_mode dilations kernel_shape pads storage_order strides"},
    {"MeanVarianceNormalization", "axes"},
    {"Mod", "fmod"},
    {"NegativeLogLikelihoodLoss", "ignore_index reduction"},
    {"OneHot", "axis"},
    {"Pad", "mode"},
    {"QLinearConv", "auto_pad dilations group kernel_shape pads strides"},
    {"QuantizeLinear", "axis block_size output_dtype precision saturate"},
    {"RMSNormalization", "axis epsilon stash_type"},
    {"ReduceL1", "keepdims noop_with_empty_axes"},
    {"ReduceL2", "keepdims noop_with_empty_axes"},
    {"ReduceLogSum", "keepdims noop_with_empty_axes"},
    {"ReduceLogSumExp", "keepdims noop_with_empty_axes"},
    {"ReduceMax", "keepdims noop_with_empty_axes"},
    {"ReduceMean", "keepdims noop_with_empty_axes"},
    {"ReduceMin", "keepdims noop_with_empty_axes"},
    {"ReduceProd", "keepdims noop_with_empty_axes"},
    {"ReduceSum", "keepdims noop_with_empty_axes"},
    {"ReduceSumSquare", "keepdims noop_with_empty_axes"},
    {"Reshape", "allowzero"},
    {"Resize",
     "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value keep_aspect_ratio_policy mode nearest_mode"},
    {"ScatterElements", "axis reduction"},
    {"ScatterND", "reduction"},
    {"Selu", "alpha gamma"},
    {"Shape", "end start"},
    {"Shrink", "bias lambd"},
    {"Softmax", "axis"},
    {"SoftmaxCrossEntropyLoss", "ignore_index reduction"},
    {"SpaceToDepth", "blocksize"},
    {"Split", "axis num_outputs"},
    {"Swish", "alpha"},
    {"ThresholdedRelu", "alpha"},
    {"TopK", "axis largest sorted"},
    {"Transpose", "perm"},
    {"Trilu", "upper"},
};

std::string_view names_of(std::string_view op) {
  const auto found = std::lower_bound(std::begin(kNames), std::end(kNames), op, [](const AttributeNames& a, std::string_view b) { return a.op < b; });
  return found != std::end(kNames) && found->op == op ? found->names : std::string_view{};
}

}  // namespace

void refuse_unknown_attributes(const Node& node, std::int64_t opset) {
  if (node.op.empty()) return;  // the rule left no node
  const std::string_view names = names_of(node.op);
  for (const auto& [name, value] : node.attributes) {
    if (name.starts_with("__") || has_word(names, name)) continue;
    throw InvalidModel(fmt::format("{} has no attribute {} at opset {} (it has {}); export the model again at an opset whose form of {} it writes",
                                   node.op, quote(name), opset, names.empty() ? "none" : names, node.op));
  }
}

}  // namespace tandem
