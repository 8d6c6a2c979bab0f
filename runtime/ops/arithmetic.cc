// Add Sub Mul Div Mod: two operands, numpy's broadcasting. Integers wrap around; a division by zero gives 0 (as numpy), never a trap.
#include <cmath>

#include "runtime/ops/families.h"
#include "runtime/ops/gradient_support.h"
#include "runtime/ops/pointwise.h"

namespace tandem {
namespace {

struct AddOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
    else
      return a + b;
  }
};
struct SubOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
    else
      return a - b;
  }
};
struct MulOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
    else
      return a * b;
  }
};
// Truncates towards zero; the smallest number divided by -1 wraps around.
struct DivOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a));
      }
      return static_cast<T>(a / b);
    } else {
      return a / b;
    }
  }
};
// The remainder with the divisor's sign (Python's %).
struct ModOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return 0;
        const T r = static_cast<T>(a % b);
        return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
      } else {
        return static_cast<T>(a % b);
      }
    } else {
      return std::fmod(a, b);
    }
  }
};
// The remainder with the dividend's sign (C's % and fmod).
struct FmodOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return 0;
      }
      return static_cast<T>(a % b);
    } else {
      return std::fmod(a, b);
    }
  }
};

template <class Op>
Kernel arithmetic(CpuContext& c) {
  MapBody body;
  dispatch_compute(c.out[0].dtype, [&](auto tag) { body = binary_body<Op, decltype(tag)>; });
  return map_kernel("plain", c.out[0], c.in, std::move(body));
}

void infer_arithmetic(InferContext& c) { infer_broadcast(c, kNumericTypes); }

struct ModParams {
  bool fmod;
};

void infer_mod(InferContext& c) {
  const auto fmod = c.attributes().integer("fmod", 0);
  if (fmod != 0 && fmod != 1) throw InvalidModel("attribute fmod must be 0 or 1, is " + std::to_string(fmod));
  infer_broadcast(c, kNumericTypes);
  if (fmod == 0 && is_float(c.dtype(0))) throw InvalidModel("attribute fmod must be 1 for floating point operands, is 0");
  c.set_params(ModParams{fmod == 1});
}

Kernel mod(CpuContext& c) { return c.params<ModParams>().fmod ? arithmetic<FmodOp>(c) : arithmetic<ModOp>(c); }

void add_gradient(GradientContext& c) {
  c.set_summed(0, c.dy());
  c.set_summed(1, c.dy());
}

void sub_gradient(GradientContext& c) {
  c.set_summed(0, c.dy());
  if (c.wants(1)) c.set(1, c.emit("Neg", {c.sum_to(c.dy(), c.shape(c.input(1)))}));
}

void mul_gradient(GradientContext& c) {
  for (const std::size_t i : {0u, 1u}) {
    if (c.wants(i)) c.set_summed(i, c.emit("Mul", {c.dy(), c.input(1 - i)}));
  }
}

void div_gradient(GradientContext& c) {
  const ValueId part = c.emit("Div", {c.dy(), c.input(1)});
  c.set_summed(0, part);
  if (c.wants(1)) c.set(1, c.emit("Neg", {c.sum_to(c.emit("Mul", {part, c.output()}), c.shape(c.input(1)))}));
}

// Floats: y = a - b q with q = a / b, truncated; q is flat.
void mod_gradient(GradientContext& c) {
  c.set_summed(0, c.dy());
  if (!c.wants(1)) return;
  const ValueId q = c.emit("Round", {c.emit("Div", {c.emit("Sub", {c.input(0), c.output()}), c.input(1)})});
  c.set(1, c.emit("Neg", {c.sum_to(c.emit("Mul", {c.dy(), q}), c.shape(c.input(1)))}));
}

}  // namespace

std::span<const OpDef> arithmetic_ops() {
  static const OpDef ops[] = {
      with_gradient(pointwise_op("Add", 2, 2, infer_arithmetic, arithmetic<AddOp>), add_gradient),
      with_gradient(pointwise_op("Sub", 2, 2, infer_arithmetic, arithmetic<SubOp>), sub_gradient),
      with_gradient(pointwise_op("Mul", 2, 2, infer_arithmetic, arithmetic<MulOp>), mul_gradient),
      with_gradient(pointwise_op("Div", 2, 2, infer_arithmetic, arithmetic<DivOp>), div_gradient),
      with_gradient(pointwise_op("Mod", 2, 2, infer_mod, mod, Bf16Rule::kWiden), mod_gradient),
  };
  return ops;
}

}  // namespace tandem
