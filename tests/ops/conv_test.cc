// Conv in every type and layout against double precision, and faults that other programs had.
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/support/conv_cases.h"

namespace tandem::test {
namespace {

const std::vector<ConvCase>& cases() {
  static const std::vector<ConvCase> all = {
      {.x = {2, 3, 9}, .w = {4, 3, 3}, .strides = {2}, .begin = {1}, .end = {2}},
      {.x = {1, 5, 7, 6}, .w = {7, 5, 3, 2}, .begin = {1, 0}, .end = {0, 1}},
      {.x = {2, 6, 8, 5}, .w = {9, 2, 3, 3}, .strides = {2, 1}, .dilations = {1, 2}, .begin = {0, 2}, .end = {3, 2}, .group = 3},
      {.x = {1, 3, 6, 6}, .w = {6, 1, 3, 3}, .begin = {1, 1}, .end = {1, 1}, .group = 3},
      {.x = {1, 17, 5, 4}, .w = {33, 17, 1, 1}},
      {.x = {1, 2, 4, 5, 6}, .w = {3, 2, 2, 3, 1}, .strides = {1, 2, 3}, .begin = {1, 0, 0}, .end = {0, 1, 0}},
      {.x = {1, 2, 3, 3, 3, 2}, .w = {2, 1, 2, 2, 2, 2}, .group = 2},
      {.x = {0, 1, 3, 3}, .w = {1, 1, 2, 2}},
  };
  return all;
}

void check(const ConvCase& c, DType type, const EvaluateOptions& options, bool constant_weights, bool bias) {
  SCOPED_TRACE(to_string(c) + " " + std::string(name_of(type)));
  const Tensor x = to_type(type, random_f32(c.x, 1)), w = to_type(type, random_f32(c.w, 2)),
               b = bias ? to_type(type, random_f32({c.w[0]}, 3)) : Tensor();
  NodeCase node{.op = "Conv", .attributes = conv_attributes(c), .operands = {x, w}};
  if (bias) node.operands.push_back(b);
  if (constant_weights) node.constant = {1, 2};
  const bool half = type == DType::kBF16;
  const double r = type == DType::kF64 ? 1e-14 : (half ? 1.0 / 256 : 1e-5);
  expect_close(to_type(DType::kF64, run_node(node, options)[0]), reference_conv(c, x, w, b), r, half ? 1e-3 : r);
}

TEST(Conv, AgreesWithDoublePrecisionInEveryTypeAndLayout) {
  for (const ConvCase& c : cases()) {
    for (const DType type : {DType::kF32, DType::kF64, DType::kBF16}) {
      for (const bool constant : {false, true}) {
        check(c, type, {}, constant, constant);
        check(c, type, {.layout = Layout::kChannelsLast}, constant, true);
        check(c, type, {.layout = Layout::kChannelsLast, .extra_pitch = 5}, constant, false);
      }
    }
  }
}

TEST(Conv, StoresBfloat16AndRoundsWeights) {
  const ConvCase c = cases()[1];
  const Tensor x = random_f32(c.x, 1), w = random_f32(c.w, 2), b = random_f32({c.w[0]}, 3);
  const EvaluateOptions options{.layout = Layout::kChannelsLast, .precision = Precision::kBF16, .store_bf16 = true};
  const Tensor got = run_node({.op = "Conv", .attributes = conv_attributes(c), .operands = {x, w, b}, .constant = {1, 2}}, options)[0];
  const Tensor want = reference_conv(c, to_type(DType::kBF16, x), to_type(DType::kBF16, w), b);
  expect_close(to_type(DType::kF64, got), want, 1.0 / 256, 1e-4);
}

Tensor conv_row(std::vector<float> x, std::vector<float> w, Attributes a) {
  const auto n = static_cast<std::int64_t>(x.size()), k = static_cast<std::int64_t>(w.size());
  return run_node({.op = "Conv", .attributes = std::move(a), .operands = {f32({1, 1, n}, std::move(x)), f32({1, 1, k}, std::move(w))}})[0];
}

Attributes same(const char* mode, std::int64_t stride) {
  Attributes a;
  a.set("auto_pad", std::string(mode));
  a.set("strides", std::vector<std::int64_t>{stride});
  return a;
}

TEST(Conv, SamePadsByStrideWithTheOddCellWhereTheModeSays) {
  expect_close(conv_row({1, 2, 3, 4}, {1, 1, 1}, same("SAME_UPPER", 2)), f32({1, 1, 2}, {6, 7}));
  expect_close(conv_row({1, 2, 3, 4}, {1, 1, 1}, same("SAME_LOWER", 2)), f32({1, 1, 2}, {3, 9}));
  expect_close(conv_row({1, 2, 3}, {1, 1}, same("SAME_UPPER", 1)), f32({1, 1, 3}, {3, 5, 3}));
  expect_close(conv_row({1, 2, 3}, {1, 1}, same("SAME_LOWER", 1)), f32({1, 1, 3}, {1, 3, 5}));
}

TEST(Conv, SameNeverCrops) {
  expect_close(conv_row({1, 2, 3, 4}, {1}, same("SAME_UPPER", 2)), f32({1, 1, 2}, {1, 3}));
  expect_close(conv_row({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1}, same("SAME_LOWER", 5)), f32({1, 1, 2}, {1, 6}));
}

TEST(Conv, AsymmetricPads) {
  Attributes a;
  a.set("pads", std::vector<std::int64_t>{0, 2});
  expect_close(conv_row({1, 2, 3, 4}, {1, 1, 1}, a), f32({1, 1, 4}, {6, 9, 7, 4}));
}

TEST(Conv, MultiplierAndGroupsKeepTheChannelOrder) {
  Attributes two;
  two.set("group", std::int64_t{2});
  expect_close(run_node({.op = "Conv", .attributes = two, .operands = {f32({1, 2, 1, 1}, {1, 2}), f32({4, 1, 1, 1}, {1, 10, 100, 1000})}})[0],
               f32({1, 4, 1, 1}, {1, 10, 200, 2000}));
  expect_close(run_node({.op = "Conv", .attributes = two, .operands = {f32({1, 4, 1, 1}, {1, 2, 3, 4}), f32({2, 2, 1, 1}, {1, 10, 100, 1000})}})[0],
               f32({1, 2, 1, 1}, {21, 4300}));
}

void expect_refused(Shape x, Shape w, Attributes a, const char* word) {
  try {
    run_node({.op = "Conv", .attributes = std::move(a), .operands = {random_f32(std::move(x), 1), random_f32(std::move(w), 2)}});
    ADD_FAILURE() << "not refused: " << word;
  } catch (const InvalidModel& e) {
    EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
  }
}

TEST(Conv, RefusesWhatContradictsItself) {
  const auto with = [](const char* name, AttributeValue v) {
    Attributes a;
    a.set(name, std::move(v));
    return a;
  };
  using Ints = std::vector<std::int64_t>;
  expect_refused({1, 1, 5}, {1, 1, 2}, with("strides", Ints{0}), "strides");
  expect_refused({1, 1, 5}, {1, 1, 2}, with("strides", Ints{1, 1}), "strides");
  expect_refused({1, 1, 5}, {1, 1, 2}, with("dilations", Ints{-1}), "dilations");
  expect_refused({1, 1, 5}, {1, 1, 2}, with("pads", Ints{-1, 0}), "pads");
  expect_refused({1, 1, 5}, {1, 1, 2}, with("kernel_shape", Ints{3}), "kernel_shape");
  expect_refused({1, 1, 5}, {1, 1, 2}, with("auto_pad", std::string("SAME")), "auto_pad");
  expect_refused({1, 3, 5}, {2, 1, 2}, with("group", std::int64_t{2}), "group");
  expect_refused({1, 4, 5}, {3, 2, 2}, with("group", std::int64_t{2}), "group");
  expect_refused({1, 4, 5}, {4, 4, 2}, with("group", std::int64_t{0}), "group");
  expect_refused({1, 1, 4, 4}, {1, 1, 2}, {}, "rank");
  expect_refused({1, 1}, {1, 1}, {}, "rank");
  expect_refused({1, 1, 3}, {1, 1, 4}, {}, "kernel spans 4");
}

}  // namespace
}  // namespace tandem::test
