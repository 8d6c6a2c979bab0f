// FusedConv, FusedSeparable and the hot paths of Conv: channels-last, every epilogue, odd sizes, against double precision.
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/support/conv_cases.h"

namespace tandem::test {
namespace {

struct Fusion {
  const char* activation = "none";
  Activation meaning = {};
  bool bias = false, residual = false, pre_relu = false;
};

const std::vector<Fusion>& fusions() {
  using Kind = ActivationKind;
  static const std::vector<Fusion> all = {
      {},
      {"relu", {Kind::kRelu}, true, true, true},
      {"clip", {Kind::kClip, -0.25f, 0.5f}, true, false, false},
      {"leaky_relu", {Kind::kLeakyRelu, 0.125f}, false, true, false},
      {"elu", {Kind::kElu, 0.75f}, true, false, true},
      {"sigmoid", {Kind::kSigmoid}, true, true, false},
      {"hard_sigmoid", {Kind::kHardSigmoid, 0.25f, 0.5f}, false, false, true},
      {"swish", {Kind::kSwish}, true, false, false},
      {"hard_swish", {Kind::kHardSwish}, true, true, false},
      {"tanh", {Kind::kTanh}, false, false, false},
      {"mish", {Kind::kMish}, true, false, false},
  };
  return all;
}

void set_activation(Attributes& a, const std::string& name, const char* text, const Activation& meaning) {
  a.set(name, std::string(text));
  if (meaning.kind == ActivationKind::kClip) {
    a.set(name + "_min", meaning.alpha);
    a.set(name + "_max", meaning.beta);
  } else {
    a.set(name + "_alpha", meaning.alpha);
    a.set(name + "_beta", meaning.beta);
  }
}

double relu(double v) { return v < 0 ? 0 : v; }
double bf16(double v) { return static_cast<double>(static_cast<float>(BFloat16(static_cast<float>(v)))); }

struct How {
  std::int64_t pitch = 0;
  bool half = false, constant = true;
  bool tiles = false;  // bf16, or bf16x3 for f32, on emulated AMX tiles
};
EvaluateOptions options(const How& how) {
  EvaluateOptions o;
  o.layout = Layout::kChannelsLast;
  o.extra_pitch = how.pitch;
  o.precision = how.half ? Precision::kBF16 : (how.tiles ? Precision::kBF16x3 : Precision::kF32);
  o.store_bf16 = how.half;
  o.cpu.emulate_amx = how.tiles;
  return o;
}
void expect_like(const Tensor& got, const Tensor& want, bool half) {
  expect_close(to_type(DType::kF64, got), want, half ? 1.0 / 256 : 2e-5, half ? 2e-3 : 1e-5);
}
Tensor stored(const Tensor& t, bool half) { return half ? map_f64(t, bf16) : to_type(DType::kF64, t); }

void check_conv(const ConvCase& c, const Fusion& f, const How& how) {
  SCOPED_TRACE(to_string(c) + " " + f.activation + (how.half ? " bf16" : "") + " pitch " + std::to_string(how.pitch));
  const Tensor x = random_f32(c.x, 1), w = random_f32(c.w, 2), b = f.bias ? random_f32({c.w[0]}, 3) : Tensor();
  Tensor want = reference_conv(c, f.pre_relu ? map_f64(stored(x, how.half), relu) : stored(x, how.half), stored(w, how.half), b);
  NodeCase node{.op = "FusedConv", .attributes = conv_attributes(c), .operands = {x, w, b}};
  if (f.residual) {
    node.operands.push_back(random_f32(want.shape(), 4));
    want = add_f64(want, stored(node.operands[3], how.half));
  }
  want = map_f64(want, [&](double v) { return activate(f.meaning, v); });
  if (how.constant) node.constant = {1, 2};
  node.attributes.set("pre_relu", std::int64_t{f.pre_relu});
  set_activation(node.attributes, "activation", f.activation, f.meaning);
  expect_like(run_node(node, options(how))[0], want, how.half);
}

const std::vector<ConvCase>& cases() {
  static const std::vector<ConvCase> all = {
      {.x = {2, 19, 5, 7}, .w = {33, 19, 1, 1}},                                 // direct
      {.x = {1, 64, 13, 11}, .w = {32, 64, 1, 1}},                               // more than one block
      {.x = {1, 16, 9, 7}, .w = {20, 16, 1, 1}, .strides = {2, 2}},              // shortcut
      {.x = {2, 17, 7, 6}, .w = {9, 17, 3, 3}, .begin = {1, 1}, .end = {1, 1}},  // pointers
      {.x = {1, 14, 12, 9}, .w = {40, 14, 3, 5}, .strides = {2, 3}, .dilations = {2, 1}, .begin = {0, 2}, .end = {3, 1}},
      {.x = {1, 3, 15, 13}, .w = {32, 3, 3, 3}, .strides = {2, 2}},                           // first layer
      {.x = {1, 12, 6, 7}, .w = {18, 4, 3, 3}, .begin = {1, 1}, .end = {1, 1}, .group = 3},   // groups
      {.x = {1, 4, 6, 7}, .w = {12, 1, 3, 3}, .begin = {1, 1}, .end = {1, 1}, .group = 4},    // multiplier 3
      {.x = {1, 13, 21}, .w = {8, 13, 4}, .strides = {3}, .begin = {2}, .end = {1}},          // one dimension
      {.x = {1, 13, 4, 5, 3}, .w = {8, 13, 2, 3, 2}, .begin = {1, 0, 1}, .end = {0, 1, 0}},   // three
      {.x = {2, 16, 9, 8}, .w = {16, 1, 3, 3}, .begin = {1, 1}, .end = {1, 1}, .group = 16},  // depthwise, rolling
      {.x = {1, 21, 3, 2}, .w = {21, 1, 3, 3}, .begin = {1, 1}, .end = {1, 1}, .group = 21},
      {.x = {1, 9, 6, 7}, .w = {9, 1, 3, 3}, .group = 9},  // no pads
      {.x = {1, 9, 1, 1}, .w = {9, 1, 3, 3}, .begin = {1, 1}, .end = {1, 1}, .group = 9},
      {.x = {1, 9, 4, 5}, .w = {9, 1, 3, 3}, .begin = {2, 2}, .end = {2, 2}, .group = 9},
      {.x = {1, 37, 10, 9}, .w = {37, 1, 3, 3}, .strides = {2, 2}, .begin = {0, 1}, .end = {1, 1}, .group = 37},
      {.x = {1, 10, 9, 8}, .w = {10, 1, 5, 5}, .dilations = {1, 2}, .begin = {2, 4}, .end = {2, 4}, .group = 10},
      {.x = {1, 10, 17}, .w = {10, 1, 3}, .begin = {1}, .end = {1}, .group = 10},
      {.x = {0, 16, 3, 3}, .w = {8, 16, 1, 1}},
  };
  return all;
}

TEST(FusedConv, EveryShapeInFloat32) {
  for (const ConvCase& c : cases()) {
    for (const std::int64_t pitch : {0, 7}) {
      check_conv(c, fusions()[0], {.pitch = pitch});
      check_conv(c, fusions()[1], {.pitch = pitch});
    }
    check_conv(c, fusions()[2], {.pitch = 3, .constant = false});
  }
}

TEST(FusedConv, EveryShapeInBfloat16) {
  for (const ConvCase& c : cases()) {
    check_conv(c, fusions()[0], {.half = true});
    check_conv(c, fusions()[1], {.pitch = 5, .half = true, .constant = false});
  }
}

TEST(FusedConv, EveryShapeOnTiles) {
  for (const ConvCase& c : cases()) {
    check_conv(c, fusions()[1], {.pitch = 2, .tiles = true});
    check_conv(c, fusions()[1], {.half = true, .tiles = true});
  }
}

TEST(FusedConv, EveryEpilogue) {
  for (const Fusion& f : fusions()) {
    for (const std::size_t i : {0, 3, 10, 11}) {
      check_conv(cases()[i], f, {.pitch = 1});
      check_conv(cases()[i], f, {.half = true});
    }
  }
}

TEST(FusedConv, PlainLayoutTakesTheSameEpilogues) {
  const ConvCase c = cases()[3];
  const Tensor x = random_f32(c.x, 1), w = random_f32(c.w, 2), b = random_f32({c.w[0]}, 3);
  const Tensor sum = reference_conv(c, map_f64(x, relu), w, b), r = random_f32(sum.shape(), 4);
  Attributes a = conv_attributes(c);
  a.set("pre_relu", std::int64_t{1});
  set_activation(a, "activation", "swish", {ActivationKind::kSwish});
  const Tensor got = run_node({.op = "FusedConv", .attributes = a, .operands = {x, w, b, r}, .constant = {1, 2}})[0];
  expect_like(got, map_f64(add_f64(sum, r), [](double v) { return activate<double>({ActivationKind::kSwish}, v); }), false);
}

TEST(FusedConv, KeepsNotANumber) {
  for (const char* activation : {"relu", "clip", "swish", "none"}) {
    Attributes a;
    set_activation(a, "activation", activation, {ActivationKind::kClip, 0, 6});
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const Tensor x = f32({1, 1, 1, 2}, {nan, 1}), w = f32({16, 1, 1, 1}, std::vector<float>(16, 1.0f));
    const Tensor y = run_node({.op = "FusedConv", .attributes = a, .operands = {x, w}, .constant = {1}}, options({}))[0];
    EXPECT_TRUE(std::isnan(y.as<float>()[0])) << activation;
    EXPECT_FALSE(std::isnan(y.as<float>()[1])) << activation;
  }
}

TEST(FusedConv, RefusesAResidualOfAnotherShape) {
  const Tensor x = random_f32({1, 2, 3, 3}, 1), w = random_f32({4, 2, 1, 1}, 2);
  EXPECT_THROW(run_node({.op = "FusedConv", .attributes = {}, .operands = {x, w, Tensor(), random_f32({1, 4, 3, 1}, 3)}}), InvalidModel);
}

struct SeparableCase {
  ConvCase depthwise;
  std::int64_t outputs;
};

void check_separable(const SeparableCase& s, const Fusion& middle, const Fusion& last, const How& how) {
  const ConvCase& c = s.depthwise;
  SCOPED_TRACE(to_string(c) + " to " + std::to_string(s.outputs) + " " + middle.activation + " " + last.activation + (how.half ? " bf16" : ""));
  Shape pointwise(c.x.size(), 1);
  pointwise[0] = s.outputs;
  pointwise[1] = c.x[1];
  const Tensor x = random_f32(c.x, 1), wd = random_f32(c.w, 2), wp = random_f32(pointwise, 3);
  const Tensor bd = middle.bias ? random_f32({c.x[1]}, 4) : Tensor(), bp = last.bias ? random_f32({s.outputs}, 5) : Tensor();
  Tensor mid = reference_conv(c, middle.pre_relu ? map_f64(stored(x, how.half), relu) : stored(x, how.half), stored(wd, how.half), bd);
  mid = stored(map_f64(mid, [&](double v) { return activate(middle.meaning, v); }), how.half);
  Tensor want = reference_conv({.x = mid.shape(), .w = pointwise}, mid, stored(wp, how.half), bp);
  NodeCase node{.op = "FusedSeparable", .attributes = conv_attributes(c), .operands = {x, wd, bd, wp, bp}, .constant = {1, 2, 3, 4}};
  if (last.residual) {
    node.operands.push_back(random_f32(want.shape(), 6));
    want = add_f64(want, stored(node.operands[5], how.half));
  }
  want = map_f64(want, [&](double v) { return activate(last.meaning, v); });
  node.attributes.set("pre_relu", std::int64_t{middle.pre_relu});
  set_activation(node.attributes, "mid_activation", middle.activation, middle.meaning);
  set_activation(node.attributes, "activation", last.activation, last.meaning);
  // bf16: the middle may round the other way where the reference's sum lies on a boundary; one step of it, times a weight below 1.
  expect_close(to_type(DType::kF64, run_node(node, options(how))[0]), want, how.half ? 1.0 / 128 : 2e-5, how.half ? 2e-2 : 2e-5);
}

TEST(FusedSeparable, EveryShape) {
  const SeparableCase all[] = {
      {{.x = {1, 16, 19, 19}, .w = {16, 1, 3, 3}, .begin = {1, 1}, .end = {1, 1}, .group = 16}, 48},
      {{.x = {2, 21, 5, 6}, .w = {21, 1, 3, 3}, .begin = {1, 1}, .end = {1, 1}, .group = 21}, 13},
      {{.x = {1, 11, 8, 7}, .w = {11, 1, 3, 3}, .strides = {2, 2}, .begin = {0, 1}, .end = {1, 1}, .group = 11}, 34},
      {{.x = {1, 9, 7, 6}, .w = {9, 1, 5, 3}, .dilations = {1, 2}, .begin = {2, 2}, .end = {2, 2}, .group = 9}, 16},
      {{.x = {1, 12, 30}, .w = {12, 1, 3}, .begin = {1}, .end = {1}, .group = 12}, 17},
      {{.x = {1, 520, 4, 4}, .w = {520, 1, 3, 3}, .begin = {1, 1}, .end = {1, 1}, .group = 520}, 1100},
  };
  const auto& f = fusions();
  for (const SeparableCase& s : all) {
    check_separable(s, f[0], f[0], {});
    check_separable(s, f[1], f[1], {.pitch = 3});
    check_separable(s, f[8], f[7], {.pitch = 1});
    check_separable(s, f[0], f[0], {.half = true});
    check_separable(s, f[1], f[1], {.pitch = 2, .half = true});
    check_separable(s, f[1], f[8], {.tiles = true});
    check_separable(s, f[1], f[8], {.pitch = 3, .half = true, .tiles = true});
  }
}

TEST(FusedSeparable, RefusesWeightsThatDoNotFit) {
  const Tensor x = random_f32({1, 4, 3, 3}, 1), wd = random_f32({4, 1, 3, 3}, 2), wp = random_f32({2, 4, 1, 1}, 3);
  const auto run = [&](Tensor a, Tensor b) {
    run_node({.op = "FusedSeparable", .attributes = {}, .operands = {x, std::move(a), Tensor(), std::move(b)}, .constant = {1, 3}}, options({}));
  };
  EXPECT_NO_THROW(run(wd, wp));
  EXPECT_THROW(run(random_f32({8, 1, 3, 3}, 2), wp), InvalidModel);
  EXPECT_THROW(run(wd, random_f32({2, 3, 1, 1}, 2)), InvalidModel);
  EXPECT_THROW(run(wd, random_f32({2, 4, 3, 3}, 2)), InvalidModel);
}

}  // namespace
}  // namespace tandem::test
