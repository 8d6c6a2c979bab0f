#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/support/conv_cases.h"

namespace tandem::test {
namespace {

struct Problem {
  ConvCase c;
  std::vector<std::int64_t> extra, out;
};
const std::vector<Problem>& problems() {
  static const std::vector<Problem> all = {
      {{.x = {2, 3, 4}, .w = {3, 2, 3}, .strides = {2}, .begin = {1}, .end = {0}}, {1}, {9}},
      {{.x = {1, 4, 5, 3}, .w = {4, 3, 3, 2}, .strides = {2, 3}, .dilations = {2, 1}, .begin = {1, 0}, .end = {2, 1}, .group = 2}, {0, 2}, {10, 9}},
      {{.x = {1, 2, 2, 3, 2}, .w = {2, 3, 2, 2, 2}, .strides = {2, 1, 1}}, {0, 0, 0}, {4, 4, 3}},
      {{.x = {2, 19, 9, 7}, .w = {19, 33, 2, 2}, .strides = {2, 2}}, {0, 0}, {18, 14}},                        // one tap for each phase
      {{.x = {1, 8, 5, 4}, .w = {8, 5, 2, 1}, .strides = {3, 2}}, {0, 0}, {14, 7}},                            // phases without any tap
      {{.x = {1, 12, 6, 5}, .w = {12, 7, 3, 3}, .begin = {1, 1}, .end = {1, 1}, .group = 2}, {0, 0}, {6, 5}},  // stride 1
      // depthwise
      {{.x = {2, 19, 6, 5}, .w = {19, 1, 3, 3}, .strides = {2, 2}, .begin = {1, 0}, .end = {1, 1}, .group = 19}, {1, 0}, {12, 10}},
      {{.x = {1, 21, 6, 5}, .w = {21, 1, 5, 3}, .dilations = {1, 2}, .begin = {2, 2}, .end = {2, 1}, .group = 21}, {0, 0}, {6, 6}},
      {{.x = {1, 9, 4, 5}, .w = {9, 1, 4, 3}, .strides = {3, 2}, .dilations = {2, 3}, .begin = {1, 2}, .end = {0, 1}, .group = 9}, {0, 1}, {15, 13}},
      {{.x = {1, 5, 7, 6}, .w = {5, 17, 4, 4}, .strides = {2, 2}, .begin = {1, 1}, .end = {1, 1}}, {1, 0}, {15, 12}},
  };
  return all;
}

TEST(ConvTranspose, AgreesWithDoublePrecision) {
  for (const auto& [c, extra, out] : problems()) {
    SCOPED_TRACE(to_string(c));
    for (const DType type : {DType::kF32, DType::kF64, DType::kBF16}) {
      const Tensor x = to_type(type, random_f32(c.x, 1)), w = to_type(type, random_f32(c.w, 2)), b = to_type(type, random_f32({c.w[1] * c.group}, 3));
      Attributes a = conv_attributes(c);
      a.set("output_padding", extra);
      const double r = type == DType::kBF16 ? 1.0 / 256 : 1e-5;
      for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
        const auto got =
            run_node({.op = "ConvTranspose", .attributes = a, .operands = {x, w, b}, .constant = {1}}, {.layout = layout, .extra_pitch = 3});
        expect_close(to_type(DType::kF64, got[0]), reference_conv_transpose(c, x, w, b, out), r, type == DType::kBF16 ? 2e-3 : 1e-5);
      }
    }
  }
}

TEST(ConvTranspose, EveryPrecisionWithConstantAndComputedWeights) {
  for (const auto& [c, extra, out] : problems()) {
    SCOPED_TRACE(to_string(c));
    for (const Precision precision : {Precision::kF32, Precision::kBF16x3, Precision::kBF16}) {
      const bool half = precision == Precision::kBF16;
      const auto rounded = [&](const Tensor& t) { return half ? to_type(DType::kF32, to_type(DType::kBF16, t)) : t; };
      const Tensor x = random_f32(c.x, 1), w = random_f32(c.w, 2), b = random_f32({c.w[1] * c.group}, 3);
      const Tensor want = reference_conv_transpose(c, rounded(x), rounded(w), b, out);
      Attributes a = conv_attributes(c);
      a.set("output_padding", extra);
      for (const bool tiles : {false, true}) {
        if (precision == Precision::kBF16x3 && !tiles) continue;
        for (const std::vector<std::size_t>& constant : {std::vector<std::size_t>{}, {1}}) {
          EvaluateOptions o{.layout = Layout::kChannelsLast, .extra_pitch = 3, .precision = precision, .store_bf16 = half};
          o.cpu.emulate_amx = tiles;
          const auto got = run_node({.op = "ConvTranspose", .attributes = a, .operands = {x, w, b}, .constant = constant}, o);
          expect_close(to_type(DType::kF64, got[0]), want, half ? 1.0 / 256 : 1e-5, half ? 1e-4 : 1e-5);
        }
      }
    }
  }
}

TEST(ConvTranspose, BitsDoNotDependOnTheBatch) {
  const Tensor x = random_f32({3, 20, 13, 11}, 1), w = random_f32({20, 18, 3, 3}, 2);
  Attributes a;
  a.set("strides", std::vector<std::int64_t>{2, 2});
  const auto run = [&](const Tensor& images) {
    return run_node({.op = "ConvTranspose", .attributes = a, .operands = {images, w}, .constant = {1}}, {.layout = Layout::kChannelsLast})[0];
  };
  const Tensor all = run(x);
  const std::size_t in = x.as<float>().size() / 3, out = all.as<float>().size() / 3;
  for (std::size_t i = 0; i < 3; ++i) {
    const Tensor one = run(Tensor::of<float>({1, 20, 13, 11}, x.as<float>().subspan(i * in, in)));
    for (std::size_t k = 0; k < out; ++k) ASSERT_EQ(one.as<float>()[k], all.as<float>()[i * out + k]) << i;
  }
}

Tensor row(Attributes a) {
  a.set("strides", std::vector<std::int64_t>{2});
  return run_node({.op = "ConvTranspose", .attributes = std::move(a), .operands = {f32({1, 1, 2}, {1, 2}), f32({1, 1, 3}, {1, 2, 3})}})[0];
}

TEST(ConvTranspose, OutputPaddingAndAutoPad) {
  Attributes extra, upper, lower, shape;
  expect_close(row({}), f32({1, 1, 5}, {1, 2, 5, 4, 6}));
  extra.set("output_padding", std::vector<std::int64_t>{1});
  expect_close(row(extra), f32({1, 1, 6}, {1, 2, 5, 4, 6, 0}));
  upper.set("auto_pad", std::string("SAME_UPPER"));
  expect_close(row(upper), f32({1, 1, 4}, {1, 2, 5, 4}));
  lower.set("auto_pad", std::string("SAME_LOWER"));
  expect_close(row(lower), f32({1, 1, 4}, {2, 5, 4, 6}));
  shape.set("output_shape", std::vector<std::int64_t>{7});
  expect_close(row(shape), f32({1, 1, 7}, {1, 2, 5, 4, 6, 0, 0}));
}

TEST(ConvTranspose, RefusesWhatContradictsItself) {
  const auto run = [](Shape x, Shape w, Attributes a) {
    run_node({.op = "ConvTranspose", .attributes = std::move(a), .operands = {random_f32(std::move(x), 1), random_f32(std::move(w), 2)}});
  };
  Attributes group, pads;
  group.set("group", std::int64_t{2});
  pads.set("pads", std::vector<std::int64_t>{9, 9});
  EXPECT_THROW(run({1, 3, 4}, {3, 1, 2}, group), InvalidModel);
  EXPECT_THROW(run({1, 3, 4}, {2, 1, 2}, {}), InvalidModel);
  EXPECT_THROW(run({1, 1, 4}, {1, 1, 2}, pads), InvalidModel);
}

}  // namespace
}  // namespace tandem::test
