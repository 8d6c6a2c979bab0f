#include "importer/rules.h"

#include <string>
#include <unordered_map>

namespace tandem {

namespace {

constexpr OperatorForm kForms[] = {
    // convolutions and pools
    {"Conv", 1},
    {"ConvTranspose", 1},
    {"QLinearConv", 10},
    {"ConvInteger", 10},
    {"MaxPool", 1},
    {"AveragePool", 1},
    {"GlobalAveragePool", 1},
    {"GlobalMaxPool", 1},
    {"LpPool", 1},
    // normalisation
    {"BatchNormalization", 1, rewrite_batch_normalization},
    {"InstanceNormalization", 1},
    {"GroupNormalization", 18, rewrite_group_normalization},
    {"LayerNormalization", 17},
    {"RMSNormalization", 23},
    {"LRN", 1},
    {"LpNormalization", 1},
    {"MeanVarianceNormalization", 9},
    // activations
    {"Relu", 1},
    {"LeakyRelu", 1},
    {"PRelu", 1, rewrite_prelu},
    {"Elu", 1},
    {"Selu", 1},
    {"Celu", 12},
    {"Gelu", 20},
    {"Mish", 18},
    {"Swish", 24},
    {"HardSigmoid", 1},
    {"HardSwish", 14},
    {"Sigmoid", 1},
    {"Tanh", 1},
    {"Softplus", 1},
    {"Softsign", 1},
    {"ThresholdedRelu", 10},
    {"Shrink", 9},
    {"Erf", 9},
    {"Softmax", 1, rewrite_softmax},
    {"LogSoftmax", 1, rewrite_softmax},
    {"Hardmax", 1, rewrite_softmax},
    {"Clip", 1, rewrite_clip},
    // elementwise
    {"Add", 1, rewrite_arithmetic},
    {"Sub", 1, rewrite_arithmetic},
    {"Mul", 1, rewrite_arithmetic},
    {"Div", 1, rewrite_arithmetic},
    {"Pow", 1, rewrite_arithmetic},
    {"Sqrt", 1},
    {"Exp", 1},
    {"Log", 1},
    {"Neg", 1},
    {"Abs", 1},
    {"Reciprocal", 1},
    {"Floor", 1},
    {"Ceil", 1},
    {"Round", 11},
    {"Sign", 9},
    {"Mod", 10},
    {"Min", 1},
    {"Max", 1},
    {"Sum", 1},
    {"Mean", 1},
    {"Sin", 7},
    {"Cos", 7},
    // logic
    {"Equal", 1, rewrite_arithmetic},
    {"Less", 1, rewrite_arithmetic},
    {"LessOrEqual", 12},
    {"Greater", 1, rewrite_arithmetic},
    {"GreaterOrEqual", 12},
    {"And", 1, rewrite_arithmetic},
    {"Or", 1, rewrite_arithmetic},
    {"Not", 1},
    {"Xor", 1, rewrite_arithmetic},
    {"Where", 9},
    {"IsNaN", 9},
    {"IsInf", 10},
    // reductions
    {"ReduceMean", 1, rewrite_reduce},
    {"ReduceSum", 1, rewrite_reduce},
    {"ReduceMax", 1, rewrite_reduce},
    {"ReduceMin", 1, rewrite_reduce},
    {"ReduceProd", 1, rewrite_reduce},
    {"ReduceL1", 1, rewrite_reduce},
    {"ReduceL2", 1, rewrite_reduce},
    {"ReduceSumSquare", 1, rewrite_reduce},
    {"ReduceLogSum", 1, rewrite_reduce},
    {"ReduceLogSumExp", 1, rewrite_reduce},
    {"ArgMax", 1},
    {"ArgMin", 1},
    // matrices
    {"Gemm", 1, rewrite_gemm},
    {"MatMul", 1},
    // shapes
    {"Reshape", 1, rewrite_reshape},
    {"Flatten", 1},
    {"Squeeze", 1, rewrite_squeeze},
    {"Unsqueeze", 1, rewrite_squeeze},
    {"Transpose", 1},
    {"Concat", 1, rewrite_concat},
    {"Split", 2, rewrite_split},
    {"Slice", 1, rewrite_slice},
    {"Gather", 1},
    {"GatherElements", 11},
    {"GatherND", 11},
    {"ScatterElements", 11},
    {"ScatterND", 11},
    {"Pad", 1, rewrite_pad},
    {"Resize", 10, rewrite_resize},
    {"Upsample", 1, rewrite_upsample, 9},
    {"DepthToSpace", 1},
    {"SpaceToDepth", 1},
    {"CenterCropPad", 18},
    {"Expand", 8},
    {"Tile", 6},
    {"Shape", 1},
    {"Size", 1},
    {"Constant", 1, rewrite_constant},
    {"ConstantOfShape", 9, rewrite_constant_of_shape},
    {"Cast", 1, rewrite_cast},
    {"CastLike", 15, rewrite_cast_like},
    {"Identity", 1, rewrite_identity},
    {"Dropout", 1, rewrite_dropout},
    {"Range", 11},
    {"TopK", 1, rewrite_topk},
    {"CumSum", 11},
    {"Trilu", 14},
    {"OneHot", 9},
    {"If", 1},
    // quantisation
    {"QuantizeLinear", 10},
    {"DequantizeLinear", 10, rewrite_dequantize},
    {"DynamicQuantizeLinear", 11},
    {"MatMulInteger", 10},
    {"QLinearMatMul", 10},
    // losses
    {"SoftmaxCrossEntropyLoss", 12},
    {"NegativeLogLikelihoodLoss", 12},
};

}  // namespace

const OperatorForm* find_form(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const OperatorForm*> made;
    for (const OperatorForm& form : kForms) made.emplace(form.name, &form);
    return made;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

}  // namespace tandem
