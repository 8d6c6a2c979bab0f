// Gradients of convolutions and products: against central differences in double, and the weights' gradient kernels against plain sums.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/conv_cases.h"
#include "tests/support/gradient_check.h"
#include "tests/support/graph_builder.h"
#include "tests/support/reference.h"

namespace tandem::test {
namespace {

using Ints = std::vector<std::int64_t>;

const std::vector<ConvCase>& conv_cases() {
  static const std::vector<ConvCase> all = {
      {.x = {2, 3, 7}, .w = {4, 3, 3}, .begin = {1}, .end = {1}},
      {.x = {2, 3, 9}, .w = {2, 3, 4}, .strides = {3}, .dilations = {2}, .begin = {2}, .end = {0}},
      {.x = {2, 3, 6, 5}, .w = {5, 3, 3, 3}, .begin = {1, 1}, .end = {1, 1}},
      {.x = {3, 5, 4, 7}, .w = {6, 5, 1, 1}},
      {.x = {1, 4, 8, 7}, .w = {6, 4, 1, 1}, .strides = {2, 2}},                                                       // cells that nothing reads
      {.x = {1, 3, 9, 8}, .w = {4, 3, 3, 2}, .strides = {2, 3}, .dilations = {1, 2}, .begin = {0, 2}, .end = {1, 0}},  // asymmetric
      {.x = {2, 3, 8, 8}, .w = {7, 3, 3, 3}, .strides = {2, 2}, .begin = {0, 0}, .end = {1, 1}},                       // Keras' SAME
      {.x = {1, 6, 5, 6}, .w = {4, 3, 3, 3}, .begin = {1, 0}, .end = {1, 2}, .group = 2},                              // grouped
      {.x = {2, 5, 6, 7}, .w = {5, 1, 3, 3}, .begin = {1, 1}, .end = {1, 1}, .group = 5},                              // depthwise
      {.x = {1, 9, 7, 8}, .w = {9, 1, 3, 3}, .strides = {2, 2}, .begin = {1, 0}, .end = {1, 1}, .group = 9},           // depthwise, stride 2
      {.x = {1, 3, 9, 9}, .w = {3, 1, 5, 2}, .strides = {3, 2}, .dilations = {2, 3}, .begin = {3, 1}, .group = 3},     // depthwise, all at once
      {.x = {1, 2, 6, 5}, .w = {6, 1, 3, 3}, .begin = {1, 1}, .end = {1, 1}, .group = 2},                              // multiplier 3
      {.x = {1, 2, 4, 5, 4}, .w = {3, 2, 2, 3, 2}, .strides = {1, 2, 1}, .begin = {1, 1, 0}, .end = {0, 1, 1}},        // three dimensions
      {.x = {1, 4, 3, 4, 5}, .w = {4, 1, 2, 2, 2}, .group = 4},                                                        // depthwise in three
      {.x = {1, 2, 3, 2}, .w = {2, 2, 2, 2}, .begin = {3, 2}, .end = {2, 3}},                                          // pads wider than the kernel
      {.x = {1, 4, 3, 2}, .w = {4, 1, 2, 2}, .begin = {3, 2}, .end = {2, 3}, .group = 4},
  };
  return all;
}

TEST(ConvGradients, AgreeWithDifferences) {
  for (const ConvCase& c : conv_cases()) {
    SCOPED_TRACE(to_string(c));
    check_node_gradients(
        {.op = "Conv", .attributes = conv_attributes(c), .operands = {random_f32(c.x, 1), random_f32(c.w, 2), random_f32({c.w[0]}, 3)}});
  }
}

TEST(ConvGradients, AutomaticPads) {
  for (const char* pads : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
    SCOPED_TRACE(pads);
    Attributes a;
    a.set("auto_pad", std::string(pads));
    a.set("strides", Ints{2, 3});
    check_node_gradients({.op = "Conv", .attributes = a, .operands = {random_f32({2, 3, 7, 8}, 1), random_f32({4, 3, 3, 4}, 2)}});
  }
}

struct TransposedCase {
  ConvCase c;
  Ints extra = {}, shape = {};
};

TEST(ConvTransposeGradients, AgreeWithDifferences) {
  const TransposedCase cases[] = {
      {{.x = {2, 3, 4}, .w = {3, 2, 3}, .strides = {2}, .begin = {1}, .end = {0}}, {1}},
      {{.x = {1, 4, 5, 3}, .w = {4, 3, 3, 2}, .strides = {2, 3}, .dilations = {2, 1}, .begin = {1, 0}, .end = {2, 1}, .group = 2}, {0, 2}},
      {{.x = {1, 3, 4, 5}, .w = {3, 4, 3, 3}, .begin = {1, 1}, .end = {1, 1}}},
      {{.x = {1, 3, 4, 5}, .w = {3, 1, 3, 3}, .begin = {1, 0}, .end = {1, 2}, .group = 3}},
      {{.x = {1, 5, 4, 3}, .w = {5, 1, 4, 3}, .strides = {2, 2}, .begin = {1, 1}, .end = {1, 0}, .group = 5}},
      {{.x = {1, 2, 2, 3, 2}, .w = {2, 3, 2, 2, 2}, .strides = {2, 1, 1}}},
      {{.x = {1, 2, 3, 3}, .w = {2, 2, 2, 2}, .strides = {2, 2}}, {}, {9, 10}},  // an output with cells that nothing reaches
      {{.x = {1, 2, 3, 3}, .w = {2, 2, 3, 3}, .strides = {2, 2}}, {}, {5, 6}},
  };
  for (const auto& [c, extra, shape] : cases) {
    SCOPED_TRACE(to_string(c));
    Attributes a = conv_attributes(c);
    if (!extra.empty()) a.set("output_padding", extra);
    if (!shape.empty()) a.set("output_shape", shape);
    check_node_gradients(
        {.op = "ConvTranspose", .attributes = a, .operands = {random_f32(c.x, 1), random_f32(c.w, 2), random_f32({c.w[1] * c.group}, 3)}});
  }
}

// dW straight from its definition.
Tensor weight_gradient(const ConvCase& c, const Tensor& x, const Tensor& dy) {
  const reference::Array xs(x), ys(dy);
  reference::Array dw(c.w);
  const std::size_t rank = c.w.size() - 2;
  const auto at = [&](const Ints& v, std::size_t d, std::int64_t otherwise) { return v.empty() ? otherwise : v[d]; };
  const std::int64_t outputs = c.w[0] / c.group;
  const Shape kernel(c.w.begin() + 2, c.w.end());
  const std::int64_t channels = c.w[1], taps = elements(kernel), cells = elements(std::span(c.x).subspan(2));
  reference::each(ys.shape, [&](const Ints& out) {
    const std::int64_t image = out[0] * c.x[1] + out[1] / outputs * channels;
    std::int64_t tap = -1;
    reference::each(kernel, [&](const Ints& k) {
      ++tap;
      std::int64_t cell = 0;
      for (std::size_t d = 0; d < rank; ++d) {
        const std::int64_t in = out[d + 2] * at(c.strides, d, 1) - at(c.begin, d, 0) + k[d] * at(c.dilations, d, 1);
        if (in < 0 || in >= c.x[d + 2]) return;
        cell = cell * c.x[d + 2] + in;
      }
      for (std::int64_t i = 0; i < channels; ++i) {
        dw.values[static_cast<std::size_t>((out[1] * channels + i) * taps + tap)] +=
            ys.at(out) * xs.values[static_cast<std::size_t>((image + i) * cells + cell)];
      }
    });
  });
  return Tensor::of<double>(c.w, std::span<const double>(dw.values));
}

Ints outputs_of(const ConvCase& c) {
  Ints out{c.x[0], c.w[0]};
  for (std::size_t d = 0; d + 2 < c.x.size(); ++d) {
    const auto at = [&](const Ints& v, std::int64_t otherwise) { return v.empty() ? otherwise : v[d]; };
    const std::int64_t span = (c.w[d + 2] - 1) * at(c.dilations, 1) + 1;
    out.push_back((c.x[d + 2] + at(c.begin, 0) + at(c.end, 0) - span) / at(c.strides, 1) + 1);
  }
  return out;
}

Tensor rounded(const Tensor& t) { return to_type(DType::kF32, to_type(DType::kBF16, t)); }

// The gradient of the weights, handed over in several ways.
void expect_weight_gradient(const ConvCase& c, const std::vector<EvaluateOptions>& ways) {
  const Tensor x = random_f32(c.x, 1), dy = random_f32(outputs_of(c), 2);
  const Tensor want = weight_gradient(c, x, dy), want_half = weight_gradient(c, rounded(x), rounded(dy));
  Attributes a = conv_attributes(c);
  a.set("kernel_shape", Ints(c.w.begin() + 2, c.w.end()));
  const double terms = static_cast<double>(dy.size() / c.w[0]);
  for (const EvaluateOptions& o : ways) {
    const auto got = run_node({.op = "ConvGradWeight", .attributes = a, .operands = {x, dy}}, o);
    expect_close(to_type(DType::kF64, got[0]), o.store_bf16 ? want_half : want, 2e-6, 2e-6 * std::sqrt(terms));
  }
}

// Larger than central differences could pay for: several blocks of positions, rows and columns.
const std::vector<ConvCase>& large_cases() {
  static const std::vector<ConvCase> all = {
      {.x = {2, 70, 17, 15}, .w = {150, 70, 1, 1}},
      {.x = {3, 33, 9, 11}, .w = {40, 33, 3, 3}, .begin = {1, 1}, .end = {1, 1}},
      {.x = {2, 3, 41, 37}, .w = {32, 3, 3, 3}, .strides = {2, 2}, .end = {1, 1}},
      {.x = {1, 48, 15, 14}, .w = {64, 48, 1, 1}, .strides = {2, 2}},
      {.x = {2, 32, 12, 13}, .w = {36, 8, 3, 3}, .dilations = {2, 2}, .begin = {2, 2}, .end = {2, 2}, .group = 4},
      {.x = {2, 77, 21, 19}, .w = {77, 1, 3, 3}, .begin = {1, 1}, .end = {1, 1}, .group = 77},
      {.x = {2, 66, 23, 22}, .w = {66, 1, 3, 3}, .strides = {2, 2}, .end = {1, 1}, .group = 66},
      {.x = {2, 35, 18, 17}, .w = {35, 1, 5, 7}, .begin = {2, 3}, .end = {2, 3}, .group = 35},
      {.x = {1, 17, 200}, .w = {17, 1, 6}, .strides = {2}, .begin = {3}, .end = {1}, .group = 17},
      {.x = {1, 20, 5, 9, 8}, .w = {10, 20, 3, 2, 3}, .begin = {1, 0, 1}, .end = {1, 1, 1}},
      {.x = {900, 40, 1}, .w = {30, 40, 1}},
      // positions cut in parts
      {.x = {1, 24, 50, 40}, .w = {40, 24, 3, 3}, .begin = {1, 1}, .end = {1, 1}},
      {.x = {2, 33, 50, 47}, .w = {33, 1, 3, 3}, .begin = {1, 1}, .end = {1, 1}, .group = 33},
  };
  return all;
}

TEST(ConvGradWeight, AgreesWithPlainSums) {
  std::vector<EvaluateOptions> ways;
  for (const std::int64_t extra : {0, 3}) {
    ways.push_back({.layout = Layout::kChannelsLast, .extra_pitch = extra});
    ways.push_back({.layout = Layout::kChannelsLast, .extra_pitch = extra, .store_bf16 = true, .widen_outputs = true});
  }
  ways.push_back({.layout = Layout::kChannelsLast, .precision = Precision::kBF16x3});
  ways.back().cpu.emulate_amx = true;
  ways.push_back({.layout = Layout::kChannelsLast, .precision = Precision::kBF16, .store_bf16 = true, .widen_outputs = true});
  ways.back().cpu.emulate_amx = true;
  for (const ConvCase& c : large_cases()) {
    SCOPED_TRACE(to_string(c));
    expect_weight_gradient(c, ways);
  }
}

// A small dW from many positions: tasks are parts of them, and a last stage adds their sums. Twice the same bits.
TEST(ConvGradWeight, IsTheSameEveryTime) {
  const Tensor x = random_f32({2, 24, 50, 40}, 1), dy = random_f32({2, 40, 48, 38}, 2);
  Attributes a;
  a.set("kernel_shape", Ints{3, 3});
  const auto run = [&] { return run_node({.op = "ConvGradWeight", .attributes = a, .operands = {x, dy}}, {.layout = Layout::kChannelsLast})[0]; };
  const Tensor once = run(), again = run();
  for (std::size_t i = 0; i < once.as<float>().size(); ++i) ASSERT_EQ(once.as<float>()[i], again.as<float>()[i]) << i;
}

TEST(ConvGradients, OneHundredRandomOnes) {
  std::mt19937_64 random(7);
  const auto up_to = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  for (int i = 0; i < 100; ++i) {
    ConvCase c;
    c.group = std::vector<std::int64_t>{1, 1, 2, 3, 5}[static_cast<std::size_t>(up_to(0, 4))];
    const std::int64_t channels = up_to(1, 3), outputs = up_to(1, 3);
    c.x = {up_to(1, 2), c.group * channels};
    c.w = {c.group * outputs, channels};
    for (std::int64_t d = 0, rank = up_to(1, 2); d < rank; ++d) {
      const std::int64_t kernel = up_to(1, 4), dilation = up_to(1, 2);
      c.strides.push_back(up_to(1, 3));
      c.dilations.push_back(dilation);
      c.begin.push_back(up_to(0, 3));
      c.end.push_back(up_to(0, 3));
      c.x.push_back((kernel - 1) * dilation + up_to(1, 6));
      c.w.push_back(kernel);
    }
    SCOPED_TRACE(to_string(c));
    check_node_gradients({.op = "Conv", .attributes = conv_attributes(c), .operands = {random_f32(c.x, 1), random_f32(c.w, 2)}}, {.most = 30});
    expect_weight_gradient(c, {{.layout = Layout::kChannelsLast}});
    if (HasFailure()) return;
  }
}

TEST(MatrixGradients, Gemm) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const Shape& bias : {Shape{}, Shape{7}, Shape{4, 7}, Shape{4, 1}, Shape{1}}) {
        SCOPED_TRACE(std::to_string(trans_a) + std::to_string(trans_b) + ' ' + tandem::to_string(bias));
        Attributes a;
        a.set("transA", std::int64_t{trans_a});
        a.set("transB", std::int64_t{trans_b});
        a.set("alpha", 0.5f);
        a.set("beta", -1.5f);
        std::vector<Tensor> operands{random_f32(trans_a ? Shape{5, 4} : Shape{4, 5}, 1), random_f32(trans_b ? Shape{7, 5} : Shape{5, 7}, 2)};
        if (!bias.empty()) operands.push_back(random_f32(bias, 3));
        check_node_gradients({.op = "Gemm", .attributes = a, .operands = operands});
      }
    }
  }
}

TEST(MatrixGradients, MatMul) {
  const std::pair<Shape, Shape> cases[] = {{{4, 5}, {5, 3}},          {{5}, {5, 3}},          {{4, 5}, {5}},         {{5}, {5}},
                                           {{2, 3, 4, 5}, {5, 6}},    {{3, 4, 5}, {3, 5, 2}}, {{4, 5}, {3, 5, 2}},   {{5}, {3, 5, 2}},
                                           {{2, 1, 4, 5}, {3, 5, 2}}, {{3, 4, 5}, {5}},       {{3, 4, 5}, {1, 5, 2}}};
  for (const auto& [a, b] : cases) {
    SCOPED_TRACE(tandem::to_string(a) + ' ' + tandem::to_string(b));
    check_node_gradients({.op = "MatMul", .attributes = {}, .operands = {random_f32(a, 1), random_f32(b, 2)}});
  }
}

// One node whose operand 1 is a constant, or a parameter.
Graph weighted(const char* op, const Attributes& a, const Tensor& x, const Tensor& w, bool parameter) {
  GraphBuilder b;
  const ValueId in = b.input("x", DType::kF32, x.shape());
  const ValueId weights = parameter ? b.input("w", DType::kF32, w.shape()) : b.constant("w", w);
  b.graph.value(weights).parameter = parameter;
  b.output(b.node("y", op, {in, weights}, a));
  return b.graph;
}

TEST(Parameters, ArePackedAsConstantsAre) {
  const auto strided = attributes({{"strides", Ints{2, 2}}}), depthwise = attributes({{"group", std::int64_t{6}}}),
             both = attributes({{"strides", Ints{2, 2}}, {"group", std::int64_t{6}}}), turned = attributes({{"transB", std::int64_t{1}}});
  struct Case {
    const char* op;
    Attributes a;
    Shape x, w;
  };
  const Case cases[] = {{"Conv", {}, {2, 6, 7, 8}, {5, 6, 3, 3}},
                        {"Conv", depthwise, {2, 6, 7, 8}, {6, 1, 3, 3}},
                        {"ConvTranspose", {}, {2, 6, 7, 8}, {6, 5, 3, 3}},
                        {"ConvTranspose", strided, {2, 6, 7, 8}, {6, 5, 3, 3}},
                        {"ConvTranspose", depthwise, {2, 6, 7, 8}, {6, 1, 3, 3}},
                        {"ConvTranspose", both, {2, 6, 7, 8}, {6, 1, 3, 3}},
                        {"Gemm", {}, {3, 20}, {20, 9}},
                        {"Gemm", turned, {3, 20}, {9, 20}},
                        {"MatMul", {}, {2, 3, 20}, {20, 9}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.op + tandem::to_string(c.w));
    const Tensor x = random_f32(c.x, 1), w = random_f32(c.w, 2);
    const Graph constant = weighted(c.op, c.a, x, w, false), parameter = weighted(c.op, c.a, x, w, true);
    const CpuInfo cpu;
    const Plan as_constant = make_plan(constant, {.shapes = {c.x}}, {}, cpu), as_parameter = make_plan(parameter, {.shapes = {c.x, c.w}}, {}, cpu);
    ASSERT_EQ(as_parameter.packs.size(), 1u);
    EXPECT_EQ(as_parameter.packs[0].input, 1);
    EXPECT_EQ(as_parameter.packs[0].bytes, as_constant.packs[0].bytes);
    ASSERT_EQ(as_parameter.steps.size(), as_constant.steps.size());
    for (std::size_t i = 0; i < as_constant.steps.size(); ++i) {
      EXPECT_EQ(as_parameter.steps[i].kernel.implementation, as_constant.steps[i].kernel.implementation);
    }
    expect_close(run_planned(parameter, {x, w})[0], run_planned(constant, {x})[0], 0, 0);
  }
}

}  // namespace
}  // namespace tandem::test
