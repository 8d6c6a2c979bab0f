// Backward of the activations of one operand.
#pragma once

#include "runtime/ops/gradient_support.h"

namespace tandem {

// For Relu, LeakyRelu, ..., ThresholdedRelu, Shrink, and Clip with constant float32 bounds: one ReluGrad or ActivationGrad node, of the
// activation's result where its derivative follows from it (the argument need not be kept then), else of its argument. At 0 the
// derivative of ReLU is 0, and of a clip at its bounds as well.
void activation_gradient(GradientContext&);

// The operators themselves, of the activation family.
OpDef relu_grad_op();
OpDef activation_grad_op();

}  // namespace tandem
