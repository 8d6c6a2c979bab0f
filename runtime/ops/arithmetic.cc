// Add Sub Mul Div Mod: two operands, numpy's broadcasting. Integers wrap around; a division by zero gives 0 (as numpy), never a trap.
#include <cmath>

#include "runtime/ops/families.h"
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

}  // namespace

std::span<const OpDef> arithmetic_ops() {
  static const OpDef ops[] = {
      pointwise_op("Add", 2, 2, infer_arithmetic, arithmetic<AddOp>), pointwise_op("Sub", 2, 2, infer_arithmetic, arithmetic<SubOp>),
      pointwise_op("Mul", 2, 2, infer_arithmetic, arithmetic<MulOp>), pointwise_op("Div", 2, 2, infer_arithmetic, arithmetic<DivOp>),
      pointwise_op("Mod", 2, 2, infer_mod, mod, Bf16Rule::kWiden),
  };
  return ops;
}

}  // namespace tandem
