#include "importer/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "importer/tensor_wire.h"
#include "importer/words.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem {
namespace {

// Operators, separated by blanks. All operands have the type of operand 0:
constexpr std::string_view kOneType =
    "Add Sub Mul Div Min Max Sum Mean Concat Conv Gemm MatMul PRelu Equal Less LessOrEqual Greater GreaterOrEqual And Or Xor Mod Clip "
    "ConvTranspose InstanceNormalization GroupNormalization Range";
constexpr std::string_view kBool = "Equal Less LessOrEqual Greater GreaterOrEqual And Or Xor Not IsNaN IsInf";
constexpr std::string_view kBroadcast = "Add Sub Mul Div Pow Mod Min Max Sum Mean Less Greater LessOrEqual And Or Xor Equal GreaterOrEqual";
// The output's rank is operand 0's.
constexpr std::string_view kRankOfFirst =
    "Conv ConvTranspose MaxPool AveragePool GlobalAveragePool GlobalMaxPool LpPool BatchNormalization InstanceNormalization GroupNormalization "
    "LayerNormalization RMSNormalization LRN LpNormalization MeanVarianceNormalization Relu LeakyRelu PRelu Elu Selu Celu Gelu Mish Swish "
    "HardSigmoid HardSwish Sigmoid Tanh Softplus Softsign ThresholdedRelu Shrink Erf Softmax LogSoftmax Hardmax Clip Sqrt Exp Log Neg Abs "
    "Reciprocal Floor Ceil Round Sign Sin Cos Not IsNaN IsInf Transpose Concat Split Slice Pad Resize ScatterElements ScatterND DepthToSpace "
    "SpaceToDepth Cast Identity Dropout Tile CumSum";

class Inference {
 public:
  Inference(GraphEditor& editor, const Node& node) : editor_(editor), node_(node) {}

  void run() {
    check_types();
    const std::int64_t r = rank_of_output();
    const bool fixed = std::all_of(node_.inputs.begin(), node_.inputs.end(), [&](ValueId in) { return in == kNoValue || editor_.fact(in).fixed; });
    for (std::size_t i = 0; i < node_.outputs.size(); ++i) {
      if (node_.outputs[i] != kNoValue)
        editor_.set_fact(node_.outputs[i], {type_of_output(i), i == 0 || node_.op == "Split" || node_.op == "TopK" ? r : -1, fixed});
    }
  }

 private:
  bool has(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kNoValue; }
  DType type(std::size_t i) const { return has(i) ? editor_.fact(node_.inputs[i]).type : DType::kNone; }
  std::int64_t rank(std::size_t i) const { return has(i) ? editor_.fact(node_.inputs[i]).rank : -1; }
  const Tensor* constant(std::size_t i) const {
    return has(i) && editor_.graph.value(node_.inputs[i]).known() ? &editor_.graph.value(node_.inputs[i]).constant : nullptr;
  }
  bool is(std::string_view op) const { return node_.op == op; }

  void same_type(std::size_t a, std::size_t b) const {
    if (type(a) == DType::kNone || type(b) == DType::kNone || type(a) == type(b)) return;
    throw InvalidModel(fmt::format("operands must have one type: {} is {}, {} is {}", quote(editor_.graph.value(node_.inputs[a]).name),
                                   name_of(type(a)), quote(editor_.graph.value(node_.inputs[b]).name), name_of(type(b))));
  }
  void check_types() const {
    if (has_word(kOneType, node_.op)) {
      for (std::size_t i = 1; i < node_.inputs.size(); ++i) same_type(0, i);
    } else if (is("Where")) {
      same_type(1, 2);
    } else if (is("Pad") || is("ScatterElements") || is("ScatterND")) {
      same_type(0, 2);
    }
  }

  DType type_of_output(std::size_t i) const {
    if (has_word(kBool, node_.op) || (is("Dropout") && i == 1)) return DType::kBool;
    if (is("Shape") || is("Size") || is("ArgMax") || is("ArgMin") || (i == 1 && (is("TopK") || is("MaxPool")))) return DType::kI64;
    if (is("Cast")) return dtype_from_onnx(node_.attributes.integer("to"));
    if (is("CastLike") || is("DequantizeLinear") || is("Where")) return type(1);
    if (is("ConstantOfShape")) return node_.attributes.has("value") ? node_.attributes.tensor("value").dtype() : DType::kF32;
    if (is("QuantizeLinear")) return has(2) ? type(2) : node_.attributes.has("output_dtype") ? DType::kNone : DType::kU8;
    if (is("DynamicQuantizeLinear")) return i == 1 ? DType::kF32 : DType::kU8;
    if (is("MatMulInteger") || is("ConvInteger")) return DType::kI32;
    if (is("QLinearMatMul") || is("QLinearConv")) return type(7);
    if (is("OneHot")) return type(2);
    if (is("LayerNormalization") && i > 0) return DType::kF32;
    return type(0);
  }

  std::int64_t broadcast_rank() const {
    std::int64_t most = 0;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      if (rank(i) < 0) return -1;
      most = std::max(most, rank(i));
    }
    return most;
  }
  std::int64_t matmul_rank() const {
    const std::int64_t a = rank(0), b = rank(1);
    if (a < 0 || b < 0) return -1;
    if (a == 1 || b == 1) return std::max<std::int64_t>(a + b - 2, 0);
    return std::max(a, b);
  }
  std::int64_t reduced_rank() const {
    if (node_.attributes.integer("keepdims", 1) != 0) return rank(0);
    if (is("ArgMax") || is("ArgMin")) return rank(0) < 0 ? -1 : rank(0) - 1;
    if (!has(1)) return node_.attributes.integer("noop_with_empty_axes", 0) != 0 ? rank(0) : 0;
    return rank(0) >= 0 && constant(1) && constant(1)->size() > 0 ? rank(0) - constant(1)->size() : -1;
  }
  std::int64_t rank_of_output() const {
    if (has_word(kBroadcast, node_.op) || is("Where")) return broadcast_rank();
    if (has_word(kRankOfFirst, node_.op) || is("TopK")) return rank(0);
    if (is("Flatten") || is("Gemm")) return 2;
    if (is("MatMul")) return matmul_rank();
    if (is("Reshape")) return constant(1) ? constant(1)->size() : -1;
    if (is("Expand")) return rank(0) >= 0 && constant(1) ? std::max(rank(0), constant(1)->size()) : -1;
    if (is("ConstantOfShape")) return constant(0) ? constant(0)->size() : -1;
    if (is("Squeeze")) return rank(0) >= 0 && constant(1) ? rank(0) - constant(1)->size() : -1;
    if (is("Unsqueeze")) return rank(0) >= 0 && constant(1) ? rank(0) + constant(1)->size() : -1;
    if (node_.op.starts_with("Reduce") || is("ArgMax") || is("ArgMin")) return reduced_rank();
    if (is("Gather")) return rank(0) >= 0 && rank(1) >= 0 ? rank(0) + rank(1) - 1 : -1;
    if (is("GatherElements")) return rank(1);
    if (is("Shape") || is("Range")) return 1;
    if (is("Size")) return 0;
    if (is("CastLike") || is("QuantizeLinear") || is("DequantizeLinear") || is("Trilu")) return rank(0);
    return -1;
  }

  GraphEditor& editor_;
  const Node& node_;
};

}  // namespace

void infer_facts(GraphEditor& editor, const Node& node) {
  if (node.op == "If") return;  // the builder knows
  Inference(editor, node).run();
}

}  // namespace tandem
