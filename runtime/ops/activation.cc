// Activations of one operand and at most two attributes. f32 (and the 16-bit floats) go through the vectorised functions,
// f64 and the integers through plain loops.
#include <cmath>

#include "runtime/cpu/elementwise_hwy.h"
#include "runtime/ops/activation_gradient.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

// Operations on doubles; a and b as in elementwise_hwy.h.
double product(double x, double factor) { return factor == 0 ? 0 : x * factor; }  // minus infinity times 0 is meant to be 0
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double elu(double x, double a) { return x < 0 ? a * std::expm1(x) : x; }
double softplus(double x) { return std::isnan(x) ? x : std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double gelu_tanh(double x) { return product(x, 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)))); }
double hard_sigmoid(double x, double a, double b) { return std::isnan(x) ? x : std::max(0.0, std::min(1.0, a * x + b)); }

double evaluate_double(FloatMap kind, double x, double a, double b) {
  switch (kind) {
    case FloatMap::kErf:
      return std::erf(x);
    case FloatMap::kSigmoid:
      return sigmoid(x);
    case FloatMap::kTanh:
      return std::tanh(x);
    case FloatMap::kSoftplus:
      return softplus(x);
    case FloatMap::kSoftsign:
      return x / (1 + std::abs(x));
    case FloatMap::kRelu:
      return x < 0 ? 0 : x;
    case FloatMap::kLeakyRelu:
      return x < 0 ? a * x : x;
    case FloatMap::kElu:
      return elu(x, a);
    case FloatMap::kSelu:
      return b * elu(x, a);
    case FloatMap::kCelu:
      return x < 0 ? a * std::expm1(x / a) : x;
    case FloatMap::kGelu:
      return product(x, 0.5 * std::erfc(-x * M_SQRT1_2));
    case FloatMap::kGeluTanh:
      return gelu_tanh(x);
    case FloatMap::kMish:
      return product(x, std::tanh(softplus(x)));
    case FloatMap::kSwish:
      return product(x, sigmoid(a * x));
    case FloatMap::kHardSigmoid:
      return hard_sigmoid(x, a, b);
    case FloatMap::kHardSwish:
      return std::isnan(x) ? x : x * (std::max(0.0, std::min(6.0, x + 3)) / 6);
    default:
      throw std::logic_error("not an activation");
  }
}

struct ActivationParams {
  FloatMap kind;
  float a, b;
};

struct Entry {
  std::string_view name;
  FloatMap kind;
  const char* a_name;  // attribute of a, "" where there is none
  float a;
  const char* b_name;
  float b;
};

const Entry& entry(std::string_view op) {
  static constexpr Entry kEntries[] = {
      {"Relu", FloatMap::kRelu, "", 0, "", 0},
      {"LeakyRelu", FloatMap::kLeakyRelu, "alpha", 0.01f, "", 0},
      {"Elu", FloatMap::kElu, "alpha", 1, "", 0},
      {"Selu", FloatMap::kSelu, "alpha", 1.67326319217681884765625f, "gamma", 1.05070102214813232421875f},
      {"Celu", FloatMap::kCelu, "alpha", 1, "", 0},
      {"Gelu", FloatMap::kGelu, "", 0, "", 0},
      {"Mish", FloatMap::kMish, "", 0, "", 0},
      {"Swish", FloatMap::kSwish, "alpha", 1, "", 0},
      {"HardSigmoid", FloatMap::kHardSigmoid, "alpha", 0.2f, "beta", 0.5f},
      {"HardSwish", FloatMap::kHardSwish, "", 0, "", 0},
      {"Sigmoid", FloatMap::kSigmoid, "", 0, "", 0},
      {"Tanh", FloatMap::kTanh, "", 0, "", 0},
      {"Softplus", FloatMap::kSoftplus, "", 0, "", 0},
      {"Softsign", FloatMap::kSoftsign, "", 0, "", 0},
      {"Erf", FloatMap::kErf, "", 0, "", 0},
  };
  for (const Entry& e : kEntries) {
    if (e.name == op) return e;
  }
  throw std::logic_error("not an activation");
}

void infer(InferContext& c) {
  const Entry& e = entry(c.node().op);
  if (e.kind == FloatMap::kRelu)
    infer_unary(c, kSignedTypes);
  else
    infer_unary(c, kFloatTypes);
  ActivationParams p{e.kind, e.a, e.b};
  if (*e.a_name) p.a = c.attributes().real(e.a_name, e.a);
  if (*e.b_name) p.b = c.attributes().real(e.b_name, e.b);
  if (p.kind == FloatMap::kCelu && p.a == 0) throw InvalidModel("attribute alpha must not be 0");
  if (p.kind == FloatMap::kGelu) {
    const std::string approximate = c.attributes().text("approximate", "none");
    if (approximate != "none" && approximate != "tanh") throw InvalidModel("attribute approximate must be none or tanh, is " + approximate);
    if (approximate == "tanh") p.kind = FloatMap::kGeluTanh;
  }
  c.set_params(p);
}

struct IntegerRelu {
  template <class T>
  T operator()(T x) const {
    return x < 0 ? T{0} : x;
  }
};

Kernel cpu(CpuContext& c) {
  const auto p = c.params<ActivationParams>();
  MapBody body;
  dispatch_compute(c.in[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, double>) {
      body = [p](const void* const* in, void* out, std::int64_t n) {
        const auto f = [p](double x) { return evaluate_double(p.kind, x, p.a, p.b); };
        map_loop(f, static_cast<const double*>(in[0]), static_cast<double*>(out), n);
      };
    } else if constexpr (std::is_integral_v<T>) {
      body = unary_body<IntegerRelu, T>;
    } else {
      body = float_map(p.kind, p.a, p.b);
    }
  });
  return map_kernel("hwy", c.out[0], c.in, std::move(body));
}

constexpr OpDef activation(std::string_view name) { return with_gradient(pointwise_op(name, 1, 1, infer, cpu), activation_gradient); }

}  // namespace

std::span<const OpDef> activation_ops() {
  static const OpDef ops[] = {
      activation("Relu"),      activation("LeakyRelu"), activation("Elu"),   activation("Selu"),     activation("Celu"),
      activation("Gelu"),      activation("Mish"),      activation("Swish"), activation("Erf"),      activation("HardSigmoid"),
      activation("HardSwish"), activation("Sigmoid"),   activation("Tanh"),  activation("Softplus"), activation("Softsign"),
      relu_grad_op(),          activation_grad_op(),
  };
  return ops;
}

}  // namespace tandem
