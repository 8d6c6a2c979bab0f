// ReluGrad ActivationGrad: operands dy and the activation's result or argument. ActivationGrad's attribute `activation` names the operator;
// the operator's own attributes stand beside it, Clip's bounds as `min` and `max`.
#include "runtime/ops/activation_gradient.h"

#include <cmath>

#include "runtime/cpu/gradient_hwy.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

struct Rule {
  GradientParams map;
  bool of_result;
};

// Functions that have a linear part for positive arguments and an exponential one below: a (e^(b x) - 1) and c x.
Rule exponential(double a, double b, double c) {
  const bool same_sign = a * b >= 0 && c >= 0;
  if (!same_sign) return {{GradientMap::kExp, a * b, b, c}, false};
  return {{GradientMap::kExpResult, a * b, b, c}, true};
}

Rule rule_of(const std::string& op, const Attributes& a) {
  const auto real = [&](const char* name, float otherwise) { return static_cast<double>(a.real(name, otherwise)); };
  if (op == "Relu") return {{GradientMap::kAbove}, true};
  if (op == "LeakyRelu") return {{GradientMap::kLeaky, real("alpha", 0.01f)}, real("alpha", 0.01f) >= 0};
  if (op == "Elu") return exponential(real("alpha", 1), 1, 1);
  if (op == "Selu") {
    const double gamma = real("gamma", 1.05070102214813232421875f);
    return exponential(real("alpha", 1.67326319217681884765625f) * gamma, 1, gamma);
  }
  if (op == "Celu") return exponential(real("alpha", 1), 1 / real("alpha", 1), 1);
  if (op == "Sigmoid") return {{GradientMap::kSigmoid}, true};
  if (op == "Tanh") return {{GradientMap::kTanh}, true};
  if (op == "HardSigmoid") return {{GradientMap::kBetween, 0, 1, real("alpha", 0.2f)}, true};
  if (op == "Clip") return {{GradientMap::kBetween, real("min", -INFINITY), real("max", INFINITY), 1}, true};
  if (op == "HardSwish") return {{GradientMap::kHardSwish}, false};
  if (op == "Softsign") return {{GradientMap::kSoftsign}, false};
  if (op == "Softplus") return {{GradientMap::kSoftplus}, false};
  if (op == "Erf") return {{GradientMap::kErf}, false};
  if (op == "Gelu") return {{a.text("approximate", "none") == "tanh" ? GradientMap::kGeluTanh : GradientMap::kGelu}, false};
  if (op == "Mish") return {{GradientMap::kMish}, false};
  if (op == "Swish") return {{GradientMap::kSwish, real("alpha", 1)}, false};
  if (op == "ThresholdedRelu") return {{GradientMap::kAbove, real("alpha", 1)}, false};
  if (op == "Shrink") return {{GradientMap::kOutside, real("lambd", 0.5f)}, false};
  throw InvalidModel("attribute activation must name an activation, is " + op);
}

void infer(InferContext& c) {
  infer_unary(c, kFloatTypes);
  c.expect_same_dtype(0, 1);
  if (c.shape(0) != c.shape(1)) {
    throw InvalidModel("operands 0 and 1 must have the same shape, have " + to_string(c.shape(0)) + " and " + to_string(c.shape(1)));
  }
  const std::string op = c.node().op == "ReluGrad" ? "Relu" : c.attributes().text("activation");
  c.set_params(rule_of(op, c.attributes()).map);
}

Kernel cpu(CpuContext& c) {
  auto p = c.params<GradientParams>();
  if (c.in[0].dtype == DType::kF64) return map_kernel("plain", c.out[0], c.in, gradient_map_f64(p));
  if (p.kind == GradientMap::kBetween && c.in[1].dtype == DType::kBF16) {  // a result at its bound was rounded as the bound is
    p.a = static_cast<float>(BFloat16(static_cast<float>(p.a)));
    p.b = static_cast<float>(BFloat16(static_cast<float>(p.b)));
  }
  return map_kernel("hwy", c.out[0], c.in, gradient_map_f32(p));
}

}  // namespace

void activation_gradient(GradientContext& c) {
  const std::string& op = c.node().op;
  Attributes a = c.attributes();
  if (op == "Clip") {
    for (const std::size_t i : {1u, 2u}) {
      if (c.constant(i)) a.set(i == 1 ? "min" : "max", static_cast<float>(c.constant(i)->to_doubles()[0]));
    }
  }
  const ValueId v = rule_of(op, a).of_result ? c.output() : c.input(0);
  if (op == "Relu") return c.set(0, c.emit("ReluGrad", {c.dy(), v}));
  a.set("activation", op);
  c.set(0, c.emit("ActivationGrad", {c.dy(), v}, std::move(a)));
}

OpDef relu_grad_op() { return pointwise_op("ReluGrad", 2, 2, infer, cpu); }
OpDef activation_grad_op() { return pointwise_op("ActivationGrad", 2, 2, infer, cpu); }

}  // namespace tandem
