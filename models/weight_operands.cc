#include "models/weight_operands.h"

namespace tandem::models {
namespace {

bool is_product(const std::string& op) { return op == "Conv" || op == "ConvTranspose" || op == "Gemm" || op == "MatMul"; }

bool is_normalisation(const std::string& op) {
  return op == "BatchNormalization" || op == "LayerNormalization" || op == "GroupNormalization" || op == "InstanceNormalization" ||
         op == "RMSNormalization";
}

}  // namespace

const Node* WeightOperands::product_before(const Node& add, std::size_t constant) const {
  if (add.op != "Add" || add.inputs.size() != 2) return nullptr;
  const auto from = producer_[static_cast<std::size_t>(add.inputs[1 - constant])];
  if (from < 0) return nullptr;
  const Node& node = graph_.nodes[static_cast<std::size_t>(from)];
  return is_product(node.op) ? &node : nullptr;
}

WeightRole WeightOperands::role(const Node& node, std::size_t i) const {
  using enum WeightRole;
  const ValueId id = node.inputs[i];
  if (id == kNoValue || !graph_.value(id).known() || graph_.value(id).constant.dtype() != DType::kF32) return kNone;
  if (node.op == "MatMul") return kKernel;
  if (is_product(node.op)) return i == 1 ? kKernel : i == 2 ? kBias : kNone;
  if (is_normalisation(node.op)) {
    constexpr WeightRole kRoles[] = {kNone, kScale, kShift, kMean, kVariance};
    return i < std::size(kRoles) ? kRoles[i] : kNone;
  }
  if (node.op == "PRelu") return i == 1 ? kSlope : kNone;
  if (node.op == "Gather") return i == 0 ? kTable : kNone;
  return product_before(node, i) ? kBias : kNone;
}

std::vector<ValueId> WeightOperands::layer_weights(const Node& node) const {
  std::vector<ValueId> all;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (role(node, i) == WeightRole::kNone) continue;
    if (const Node* product = product_before(node, i)) all = layer_weights(*product);
    all.push_back(node.inputs[i]);
  }
  return all;
}

}  // namespace tandem::models
