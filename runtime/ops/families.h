// Every operator family, one line each. Each function gives the OpDefs that its file defines.
#pragma once

#include <span>

#include "runtime/ops/op.h"

namespace tandem {

std::span<const OpDef> activation_ops();
std::span<const OpDef> arg_ops();
std::span<const OpDef> arithmetic_ops();
std::span<const OpDef> batch_norm_ops();
std::span<const OpDef> batch_norm_training_ops();
std::span<const OpDef> cast_ops();
std::span<const OpDef> concat_ops();
std::span<const OpDef> conv_grad_weight_ops();
std::span<const OpDef> conv_ops();
std::span<const OpDef> conv_transpose_ops();
std::span<const OpDef> dropout_ops();
std::span<const OpDef> gather_ops();
std::span<const OpDef> identity_ops();
std::span<const OpDef> logic_ops();
std::span<const OpDef> loss_ops();
std::span<const OpDef> lrn_ops();
std::span<const OpDef> matrix_ops();
std::span<const OpDef> norm_gradient_ops();
std::span<const OpDef> norm_ops();
std::span<const OpDef> one_hot_ops();
std::span<const OpDef> optimizer_step_ops();
std::span<const OpDef> pool_gradient_ops();
std::span<const OpDef> pool_ops();
std::span<const OpDef> pow_ops();
std::span<const OpDef> quant_conv_ops();
std::span<const OpDef> quant_matrix_ops();
std::span<const OpDef> quantize_ops();
std::span<const OpDef> reduce_ops();
std::span<const OpDef> reshape_ops();
std::span<const OpDef> resize_ops();
std::span<const OpDef> scatter_ops();
std::span<const OpDef> separable_ops();
std::span<const OpDef> shape_ops();
std::span<const OpDef> slice_ops();
std::span<const OpDef> softmax_ops();
std::span<const OpDef> threshold_ops();
std::span<const OpDef> top_k_ops();
std::span<const OpDef> training_dropout_ops();
std::span<const OpDef> training_loss_ops();
std::span<const OpDef> transpose_ops();
std::span<const OpDef> unary_ops();
std::span<const OpDef> variadic_ops();

}  // namespace tandem
