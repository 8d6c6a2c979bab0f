#include "runtime/cpu/activation.h"

#include <utility>

namespace tandem {

bool activation_of(std::string_view name, ActivationKind& kind) {
  static constexpr std::pair<std::string_view, ActivationKind> kNames[] = {
      {"none", ActivationKind::kNone},   {"relu", ActivationKind::kRelu},
      {"clip", ActivationKind::kClip},   {"leaky_relu", ActivationKind::kLeakyRelu},
      {"elu", ActivationKind::kElu},     {"sigmoid", ActivationKind::kSigmoid},
      {"swish", ActivationKind::kSwish}, {"hard_sigmoid", ActivationKind::kHardSigmoid},
      {"tanh", ActivationKind::kTanh},   {"hard_swish", ActivationKind::kHardSwish},
      {"mish", ActivationKind::kMish},
  };
  for (const auto& [known, value] : kNames) {
    if (known != name) continue;
    kind = value;
    return true;
  }
  return false;
}

}  // namespace tandem
