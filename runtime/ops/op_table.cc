#include "runtime/ops/op_table.h"

#include <fmt/format.h>

#include <unordered_map>

#include "runtime/ops/families.h"

namespace tandem {
namespace {

struct Table {
  std::vector<const OpDef*> ops;
  std::unordered_map<std::string_view, const OpDef*> by_name;
};

const Table& table() {
  static const Table t = [] {
    Table made;
    // clang-format off
    for (const std::span<const OpDef> family : {
             activation_ops(),
             arg_ops(),
             arithmetic_ops(),
             batch_norm_ops(),
             batch_norm_training_ops(),
             cast_ops(),
             concat_ops(),
             conv_grad_weight_ops(),
             conv_ops(),
             conv_transpose_ops(),
             dropout_ops(),
             gather_ops(),
             identity_ops(),
             logic_ops(),
             loss_ops(),
             lrn_ops(),
             matrix_ops(),
             norm_gradient_ops(),
             norm_ops(),
             one_hot_ops(),
             optimizer_step_ops(),
             pool_gradient_ops(),
             pool_ops(),
             pow_ops(),
             quant_conv_ops(),
             quant_matrix_ops(),
             quantize_ops(),
             reduce_ops(),
             reshape_ops(),
             resize_ops(),
             scatter_ops(),
             separable_ops(),
             shape_ops(),
             slice_ops(),
             softmax_ops(),
             threshold_ops(),
             top_k_ops(),
             training_dropout_ops(),
             training_loss_ops(),
             transpose_ops(),
             unary_ops(),
             variadic_ops(),
         }) {
      // clang-format on
      for (const OpDef& op : family) {
        made.ops.push_back(&op);
        if (!made.by_name.emplace(op.name, &op).second) throw std::logic_error(fmt::format("operator {} is defined twice", op.name));
      }
    }
    return made;
  }();
  return t;
}

}  // namespace

const OpDef* find_op(std::string_view name) {
  const auto it = table().by_name.find(name);
  return it == table().by_name.end() ? nullptr : it->second;
}

const OpDef& need_op(std::string_view name) {
  if (const OpDef* op = find_op(name)) return *op;
  throw Unsupported(fmt::format("operator {} is not supported", name));
}

std::span<const OpDef* const> all_ops() { return table().ops; }

}  // namespace tandem
