#include "runtime/ops/gradient_support.h"
#include "runtime/ops/reduce.h"

namespace tandem {
namespace {

class Backward {
 public:
  explicit Backward(GradientContext& c) : c_(c), p_(c.params<ReduceParams>()), x_(c.input(0)), shape_(c.shape(x_)), kept_(shape_) {
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      if (!p_.reduced[d]) continue;
      count_ *= shape_[d];
      kept_[d] = 1;
      axes_.push_back(static_cast<std::int64_t>(d));
    }
    dy_ = c.reshape(c.dy(), kept_);
  }

  ValueId gradient() {
    switch (p_.kind) {
      case ReduceKind::kSum:
        return expanded(dy_);
      case ReduceKind::kMean:
        return expanded(emit("Div", {dy_, number(static_cast<double>(count_))}));
      case ReduceKind::kMax:
      case ReduceKind::kMin:
        return of_choice();
      case ReduceKind::kProd:
        return of_product();
      case ReduceKind::kL1:
        return emit("Mul", {emit("Sign", {x_}), dy_});
      case ReduceKind::kL2:
        return emit("Mul", {x_, only_else(c_, emit("Equal", {y(), number(0)}), emit("Div", {dy_, y()}))});
      case ReduceKind::kSumSquare:
        return emit("Mul", {x_, emit("Mul", {dy_, number(2)})});
      case ReduceKind::kLogSum:
        return expanded(emit("Div", {dy_, emit("Exp", {y()})}));
      case ReduceKind::kLogSumExp:
        break;
    }
    return emit("Mul", {emit("Exp", {emit("Sub", {x_, y()})}), dy_});
  }

 private:
  ValueId emit(const char* op, std::vector<ValueId> inputs) { return c_.emit(op, std::move(inputs)); }
  ValueId number(double v) { return c_.number(v); }
  ValueId y() { return c_.reshape(c_.output(), kept_); }
  ValueId expanded(ValueId v) { return kept_ == shape_ ? v : c_.emit("Expand", {v, c_.ints(shape_)}); }
  ValueId over_axes(const char* op, ValueId v) {
    return axes_.empty() ? v : c_.emit(op, {v, c_.ints(axes_)});  // no axes would mean all
  }

  ValueId of_choice() {
    const ValueId chosen = emit("Where", {emit("Equal", {x_, y()}), number(1), number(0)});
    return emit("Mul", {chosen, emit("Div", {dy_, over_axes("ReduceSum", chosen)})});
  }

  // The product of all other elements: of the rest over x; where there is one 0, of the rest for it and 0 for all others.
  ValueId of_product() {
    const ValueId is_zero = emit("Equal", {x_, number(0)});
    const ValueId rest = over_axes("ReduceProd", emit("Where", {is_zero, number(1), x_}));
    const ValueId zeros = over_axes("ReduceSum", emit("Where", {is_zero, number(1), number(0)}));
    const ValueId of_zero = only_where(c_, emit("Equal", {zeros, number(1)}), rest);
    const ValueId of_others = emit("Div", {only_where(c_, emit("Equal", {zeros, number(0)}), rest), x_});
    return emit("Mul", {emit("Where", {is_zero, of_zero, of_others}), dy_});
  }

  GradientContext& c_;
  const ReduceParams& p_;
  const ValueId x_;
  const Shape shape_;
  Shape kept_;
  std::vector<std::int64_t> axes_;
  std::int64_t count_ = 1;
  ValueId dy_ = kNoValue;
};

}  // namespace

void reduce_gradient(GradientContext& c) { c.set(0, Backward(c).gradient()); }

}  // namespace tandem
