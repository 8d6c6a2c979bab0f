// Backward of activations, elementwise functions, arithmetic with broadcasting, choices and softmax.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/dtype_onnx.h"
#include "runtime/graph/gradient.h"
#include "runtime/graph/infer.h"
#include "tests/support/gradient_check.h"
#include "tests/support/graph_builder.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

// Random values in [-scale, scale) + shift; one nearer than 0.02 to a kink is moved beside it.
Tensor spread(Shape shape, std::uint64_t seed, float scale = 1, float shift = 0, const std::vector<float>& kinks = {}) {
  Tensor t = random_f32(std::move(shape), seed);
  for (float& v : t.as_mutable<float>()) {
    v = v * scale + shift;
    for (const float kink : kinks) {
      if (std::abs(v - kink) < 0.02f) v = kink + 0.04f;
    }
  }
  return t;
}

const std::vector<Shape> kShapes = {{5}, {2, 3, 5, 7}, {3, 67}};

TEST(ElementwiseGradients, Activations) {
  struct Case {
    const char* op;
    Attributes attributes;
    std::vector<float> kinks;
  };
  const Case cases[] = {
      {"Relu", {}, {0}},
      {"LeakyRelu", {}, {0}},
      {"LeakyRelu", attributes({{"alpha", 0.3f}}), {0}},
      {"LeakyRelu", attributes({{"alpha", -0.3f}}), {0}},
      {"Elu", {}, {}},
      {"Elu", attributes({{"alpha", 0.4f}}), {0}},
      {"Elu", attributes({{"alpha", -0.4f}}), {0}},
      {"Selu", {}, {0}},
      {"Selu", attributes({{"alpha", 1.2f}, {"gamma", -0.7f}}), {0}},
      {"Celu", attributes({{"alpha", 0.6f}}), {}},
      {"Celu", attributes({{"alpha", -1.5f}}), {0}},
      {"Gelu", {}, {}},
      {"Gelu", attributes({{"approximate", std::string("tanh")}}), {}},
      {"Mish", {}, {}},
      {"Swish", {}, {}},
      {"Swish", attributes({{"alpha", 1.7f}}), {}},
      {"HardSigmoid", {}, {-2.5f, 2.5f}},
      {"HardSigmoid", attributes({{"alpha", -0.25f}, {"beta", 0.25f}}), {-3, 1}},
      {"HardSwish", {}, {-3, 3}},
      {"Sigmoid", {}, {}},
      {"Tanh", {}, {}},
      {"Softplus", {}, {}},
      {"Softsign", {}, {}},
      {"Erf", {}, {}},
      {"ThresholdedRelu", {}, {1}},
      {"ThresholdedRelu", attributes({{"alpha", -0.5f}}), {-0.5f}},
      {"Shrink", attributes({{"lambd", 0.7f}, {"bias", 0.2f}}), {-0.7f, 0.7f}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.op);
    for (const Shape& shape : kShapes) check_node_gradients({c.op, c.attributes, {spread(shape, 3, 4, 0, c.kinks)}});
  }
}

TEST(ElementwiseGradients, ClipWithFixedAndWithComputedBounds) {
  const Tensor low = f32({}, {-0.5f}), high = f32({1}, {0.6f}), x = spread({2, 3, 17}, 5, 1, 0, {-0.5f, 0.6f});
  for (const std::vector<std::size_t>& fixed : {std::vector<std::size_t>{1, 2}, {}, {1}}) {
    check_node_gradients({"Clip", {}, {x, low, high}, 1, fixed});
    check_node_gradients({"Clip", {}, {x, low}, 1, fixed});
    check_node_gradients({"Clip", {}, {x, {}, high}, 1, fixed});
    check_node_gradients({"Clip", {}, {x}, 1, fixed});
    check_node_gradients({"Clip", {}, {x, high, low}, 1, fixed});  // crossed: the upper bound wins
  }
}

TEST(ElementwiseGradients, PRelu) {
  for (const Shape& slope : {Shape{}, Shape{3, 5, 7}, Shape{1, 3, 1, 1}}) {
    check_node_gradients({"PRelu", {}, {spread({2, 3, 5, 7}, 1, 1, 0, {0}), spread(slope, 2)}});
  }
  check_node_gradients({"PRelu", {}, {spread({4, 5, 3}, 1, 1, 0, {0}), spread({5, 1}, 2)}});
}

TEST(ElementwiseGradients, Functions) {
  struct Case {
    const char* op;
    float scale, shift;
    std::vector<float> kinks;
  };
  const Case cases[] = {{"Sqrt", 2, 2.1f, {}},
                        {"Exp", 2, 0, {}},
                        {"Log", 1, 1.2f, {}},
                        {"Reciprocal", 1, 1.5f, {}},
                        {"Sin", 4, 0, {}},
                        {"Cos", 4, 0, {}},
                        {"Neg", 1, 0, {}},
                        {"Abs", 1, 0, {0}},
                        {"Identity", 1, 0, {}},
                        {"Floor", 2, 0, {-1, 0, 1}},
                        {"Sign", 1, 0, {0}},
                        {"Ceil", 2, 0, {-1, 0, 1}},
                        {"Round", 1, 0, {-0.5f, 0.5f}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.op);
    for (const Shape& shape : kShapes) check_node_gradients({c.op, {}, {spread(shape, 7, c.scale, c.shift, c.kinks)}});
  }
}

TEST(ElementwiseGradients, ArithmeticWithBroadcasting) {
  const std::pair<Shape, Shape> shapes[] = {{{2, 3, 5}, {2, 3, 5}}, {{2, 3, 5}, {3, 1}}, {{3, 1, 5}, {2, 1, 4, 1}},
                                            {{}, {3, 2}},           {{2, 7}, {1}},       {{1, 1}, {1, 7}}};
  for (const auto& [a, b] : shapes) {
    SCOPED_TRACE(to_string(a) + " and " + to_string(b));
    for (const char* op : {"Add", "Sub", "Mul"}) check_node_gradients({op, {}, {spread(a, 1), spread(b, 2)}});
    check_node_gradients({"Div", {}, {spread(a, 1), spread(b, 2, 0.5f, 1.5f)}});
    check_node_gradients({"Pow", {}, {spread(a, 1, 0.5f, 1.1f), spread(b, 2, 2)}});
  }
  // Mod: far from the multiples of the divisor, where it jumps
  check_node_gradients({"Mod", attributes({{"fmod", std::int64_t{1}}}), {f32({5}, {2.3f, -4.1f, 7.7f, 0.4f, -0.2f}), f32({}, {1.5f})}});
}

TEST(ElementwiseGradients, PowersWithFixedExponents) {
  for (const float e : {0.0f, 1.0f, 2.0f, 3.0f, -1.0f, 0.5f, 2.7f}) {
    check_node_gradients({"Pow", {}, {spread({2, 9}, 3, 0.5f, 1), f32({1, 1, 1}, {e})}, 1, {1}});
  }
  for (const float e : {0.0f, 1.0f, 2.0f, 3.0f}) check_node_gradients({"Pow", {}, {spread({2, 9}, 3), f32({}, {e})}, 1, {1}});
  check_node_gradients({"Pow", {}, {spread({3, 2}, 3), i64({2}, {2, 3})}, 1, {1}});
  check_node_gradients({"Pow", {}, {spread({3, 2}, 3, 0.5f, 1), i64({3, 1}, {2, 0, -1})}});
}

TEST(ElementwiseGradients, PowerOfZero) {
  const auto g = run_planned(
      [] {
        GraphBuilder b;
        const ValueId x = b.input("x", DType::kF32, {2}), e = b.input("e", DType::kF32, {2}), y = b.node("y", "Pow", {x, e});
        infer(b.graph, {.shapes = {{2}, {2}}, .values = {}});
        const GradientSeed seed{y, b.constant("dy", f32({2}, {1, 1}))};
        const ValueId wanted[] = {x, e};
        for (const ValueId id : add_gradients(b.graph, {&seed, 1}, wanted)) b.output(id);
        return b.graph;
      }(),
      {f32({2}, {0, 0}), f32({2}, {2, 0})});
  expect_close(g[0], f32({2}, {0, 0}), 0, 0);
  expect_close(g[1], f32({2}, {0, 0}), 0, 0);
}

TEST(ElementwiseGradients, ManyOperands) {
  const std::vector<Tensor> three = {spread({2, 3, 5}, 1), spread({3, 1}, 2), spread({5}, 3)};
  for (const char* op : {"Sum", "Mean", "Max", "Min"}) {
    SCOPED_TRACE(op);
    check_node_gradients({op, {}, three});
    check_node_gradients({op, {}, {three[0]}});
    check_node_gradients({op, {}, {three[0], three[1]}, 1, {1}});
    check_node_gradients({op, {}, {three[0], three[1]}, 1, {0}});
  }
}

// Equal operands: the first one takes the gradient, none is lost or counted twice.
TEST(ElementwiseGradients, TiesOfMaxGoToTheFirst) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::kF32, {3}), z = b.input("z", DType::kF32, {3}), y = b.node("y", "Max", {x, z});
  infer(b.graph, {.shapes = {{3}, {3}}, .values = {}});
  const GradientSeed seed{y, b.constant("dy", f32({3}, {5, 6, 7}))};
  const ValueId wanted[] = {x, z};
  for (const ValueId id : add_gradients(b.graph, {&seed, 1}, wanted)) b.output(id);
  const auto g = run_planned(b.graph, {f32({3}, {1, 2, 3}), f32({3}, {1, 3, 2})});
  expect_close(g[0], f32({3}, {5, 0, 7}), 0, 0);
  expect_close(g[1], f32({3}, {0, 6, 0}), 0, 0);
}

TEST(ElementwiseGradients, Where) {
  const Tensor condition = bools({3, 1}, {true, false, true});
  check_node_gradients({"Where", {}, {condition, spread({2, 3, 5}, 1), spread({5}, 2)}});
  check_node_gradients({"Where", {}, {condition, spread({}, 1), spread({3, 4}, 2)}, 1, {0}});
}

TEST(ElementwiseGradients, Softmax) {
  for (const std::int64_t axis : {-1, 0, 1}) {
    for (const char* op : {"Softmax", "LogSoftmax"}) {
      check_node_gradients({op, attributes({{"axis", axis}}), {spread({3, 5, 7}, 1, 2)}});
      check_node_gradients({op, attributes({{"axis", axis}}), {spread({3, 5, 2, 3}, 2, 2)}});
    }
  }
  check_node_gradients({"Hardmax", {}, {f32({2, 3}, {1, 2, 3, 6, 5, 4})}});
}

// In double precision a Cast to float32 would round the differences away: the seed comes back in the operand's type.
TEST(ElementwiseGradients, Casts) {
  for (const bool like : {false, true}) {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::kF32, {2, 3});
    const ValueId wide = like ? b.node("wide", "CastLike", {x, b.constant("type", Tensor::scalar(1.0))})
                              : b.node("wide", "Cast", {x}, attributes({{"to", dtype_to_onnx(DType::kF64)}}));
    infer(b.graph, {.shapes = {{2, 3}}, .values = {}});
    const GradientSeed seed{wide, b.constant("dy", typed<double>({2, 3}, {1, 2, 3, 4, 5, 6}))};
    const auto g = add_gradients(b.graph, {&seed, 1}, {&x, 1});
    b.output(g[0]);
    expect_close(run_planned(b.graph, {random_f32({2, 3}, 1)})[0], f32({2, 3}, {1, 2, 3, 4, 5, 6}), 0, 0);
  }
}

// dy = 1 gives the derivative itself; over a wide range against differences in double precision.
TEST(ElementwiseGradients, DerivativesOverAWideRange) {
  struct Case {
    const char* activation;
    Attributes attributes;
    double (*slope)(double);
  };
  const Case cases[] = {{"Gelu", {}, [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }},
                        {"Erf", {}, [](double x) { return 2 / std::sqrt(M_PI) * std::exp(-x * x); }},
                        {"Softplus", {}, [](double x) { return 1 / (1 + std::exp(-x)); }},
                        {"Swish", {}, [](double x) { return (1 + x / (1 + std::exp(x))) / (1 + std::exp(-x)); }},
                        {"Mish", {}, [](double x) {
                           const double t = std::tanh(std::log1p(std::exp(x)));
                           return t + x * (1 - t * t) / (1 + std::exp(-x));
                         }}};
  std::vector<float> x;
  for (int i = -600; i <= 600; ++i) x.push_back(0.05f * static_cast<float>(i));
  const Tensor v = Tensor::of<float>({1201}, std::span<const float>(x)), ones = f32({1201}, std::vector<float>(1201, 1.0f));
  for (const Case& c : cases) {
    SCOPED_TRACE(c.activation);
    Attributes a = c.attributes;
    a.set("activation", std::string(c.activation));
    Tensor want(DType::kF32, {1201});
    for (std::size_t i = 0; i < x.size(); ++i) want.as_mutable<float>()[i] = static_cast<float>(c.slope(x[i]));
    expect_close(apply_op("ActivationGrad", {ones, v}, a), want, 3e-6, 1e-6);
  }
}

TEST(ElementwiseGradients, LayoutsAndStorageChangeNothing) {
  const Tensor dy = random_f32({2, 7, 5, 3}, 1), v = random_f32({2, 7, 5, 3}, 2);
  expect_layouts_agree({"ReluGrad", {}, {dy, v}});
  expect_bf16_storage_rounds_once({"ReluGrad", {}, {dy, v}});
  for (const char* activation : {"Gelu", "Elu", "Sigmoid", "Mish"}) {
    const Attributes a = attributes({{"activation", std::string(activation)}});
    expect_layouts_agree({"ActivationGrad", a, {dy, v}});
    expect_bf16_storage_rounds_once({"ActivationGrad", a, {dy, v}});
  }
}

// 0.3 is no bfloat16: results at the bound were rounded, and are still at the bound.
TEST(ElementwiseGradients, ClippedResultsInBfloat16) {
  EvaluateOptions options;
  options.store_bf16 = true;
  for (const float bound : {0.3f, 0.1f, 0.7f}) {
    const Attributes a = attributes({{"activation", std::string("Clip")}, {"min", -bound}, {"max", bound}});
    const auto got = run_node({"ActivationGrad", a, {f32({4}, {1, 1, 1, 1}), f32({4}, {-bound, -bound / 2, bound / 2, bound})}}, options)[0];
    expect_close(got, f32({4}, {0, 1, 1, 0}), 0, 0);
  }
}

}  // namespace
}  // namespace tandem::test
