#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

const EvaluateOptions kPitched{.layout = Layout::kChannelsLast, .extra_pitch = 5, .precision = Precision::kF32, .store_bf16 = false, .cpu = {}};

struct Options {
  const char *mode = "nearest", *coordinates = "half_pixel", *nearest = "round_prefer_floor", *policy = "stretch";
  bool antialias = false, exclude_outside = false;
  std::vector<std::int64_t> axes = {};
  std::vector<float> roi = {};
  float extrapolation = 0;
};

// `to`: f32 scales or int64 sizes.
Tensor resize(const Tensor& x, const Tensor& to, const Options& o, const EvaluateOptions& e = {}) {
  Attributes a;
  a.set("mode", std::string(o.mode));
  a.set("coordinate_transformation_mode", std::string(o.coordinates));
  a.set("nearest_mode", std::string(o.nearest));
  a.set("keep_aspect_ratio_policy", std::string(o.policy));
  a.set("antialias", std::int64_t{o.antialias});
  a.set("exclude_outside", std::int64_t{o.exclude_outside});
  a.set("extrapolation_value", o.extrapolation);
  if (!o.axes.empty()) a.set("axes", o.axes);
  const bool sizes = to.dtype() == DType::kI64;
  const Tensor none = f32({0}, {}), roi = f32({static_cast<std::int64_t>(o.roi.size())}, o.roi);
  return run_node(
      {.op = "Resize", .attributes = a, .operands = {x, roi, sizes ? none : to, sizes ? to : Tensor()}, .outputs = 1, .constant = {1, 2, 3}}, e)[0];
}

Tensor row(std::vector<float> v) { return f32({1, 1, 1, static_cast<std::int64_t>(v.size())}, v); }
Tensor scale(float s) { return f32({4}, {1, 1, 1, s}); }
Tensor width(std::int64_t w) { return i64({4}, {1, 1, 1, w}); }

TEST(Resize, CoordinateModesOfTwoElements) {
  const Tensor x = row({1, 2});
  const auto linear = [&](const char* coordinates) { return resize(x, scale(2), {.mode = "linear", .coordinates = coordinates}); };
  expect_close(linear("half_pixel"), row({1, 1.25f, 1.75f, 2}));
  expect_close(linear("pytorch_half_pixel"), row({1, 1.25f, 1.75f, 2}));
  expect_close(linear("half_pixel_symmetric"), row({1, 1.25f, 1.75f, 2}));
  expect_close(linear("align_corners"), row({1, 4.0f / 3, 5.0f / 3, 2}));
  expect_close(linear("asymmetric"), row({1, 1.5f, 2, 2}));
  expect_close(resize(x, scale(2), {}), row({1, 1, 2, 2}));
  expect_close(resize(x, width(4), {}), row({1, 1, 2, 2}));  // roi and scales without elements are absent
  EXPECT_THROW(linear("half"), InvalidModel);
}

TEST(Resize, NearestModes) {
  const Tensor x = row({0, 1, 2, 3});
  const auto nearest = [&](const char* coordinates, const char* mode, std::int64_t w) {
    return resize(x, width(w), {.coordinates = coordinates, .nearest = mode});
  };
  expect_close(nearest("half_pixel", "round_prefer_floor", 2), row({0, 2}));  // 0.5 and 2.5
  expect_close(nearest("half_pixel", "round_prefer_ceil", 2), row({1, 3}));
  expect_close(nearest("half_pixel", "floor", 2), row({0, 2}));
  expect_close(nearest("half_pixel", "ceil", 2), row({1, 3}));
  expect_close(nearest("asymmetric", "floor", 6), row({0, 0, 1, 2, 2, 3}));
  expect_close(nearest("asymmetric", "ceil", 6), row({0, 1, 2, 2, 3, 3}));
  expect_close(nearest("tf_half_pixel_for_nn", "floor", 2), row({1, 3}));
  expect_close(nearest("tf_half_pixel_for_nn", "floor", 4), x);
}

TEST(Resize, SymmetricHalfPixelsKeepTheCentre) {
  // 4 * 0.6 = 2.4: two elements whose places are symmetric about the centre: 2 * (1 - 2 / 2.4) + (i + 0.5) / 0.6 - 0.5
  expect_close(resize(row({1, 2, 3, 4}), scale(0.6f), {.mode = "linear", .coordinates = "half_pixel_symmetric"}), row({5.0f / 3, 10.0f / 3}), 1e-6,
               0);
}

TEST(Resize, CubicInDoublePrecision) {
  const std::vector<float> v{1, 4, 2, 8};
  const auto key = [](double d) {
    const double a = -0.75;
    d = std::abs(d);
    return d <= 1 ? (a + 2) * d * d * d - (a + 3) * d * d + 1 : d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
  };
  for (const bool exclude : {false, true}) {
    std::vector<float> want;
    for (int i = 0; i < 10; ++i) {
      const double x = (i + 0.5) * 4 / 10 - 0.5;
      double sum = 0, weights = 0;
      for (int j = -4; j < 8; ++j) {
        if (exclude && (j < 0 || j > 3)) continue;
        sum += key(x - j) * static_cast<double>(v[static_cast<std::size_t>(std::clamp(j, 0, 3))]);
        weights += key(x - j);
      }
      want.push_back(static_cast<float>(sum / weights));
    }
    expect_close(resize(row(v), width(10), {.mode = "cubic", .exclude_outside = exclude}), row(want), 1e-6, 1e-6);
  }
}

TEST(Resize, AntialiasAveragesAWiderTriangle) {
  // scale 1/2: weights 1 - |d| / 2 at distances 1.5, 0.5, 0.5, 1.5, the edges repeated
  const float left = (1 * 0.25f + 1 * 0.75f + 2 * 0.75f + 3 * 0.25f) / 2, right = (2 * 0.25f + 3 * 0.75f + 4 * 0.75f + 4 * 0.25f) / 2;
  expect_close(resize(row({1, 2, 3, 4}), scale(0.5f), {.mode = "linear", .antialias = true}), row({left, right}), 1e-6, 0);
  expect_close(resize(row({1, 2}), scale(2), {.mode = "linear", .antialias = true}), row({1, 1.25f, 1.75f, 2}), 1e-6, 0);
  expect_close(resize(row({5, 5, 5, 5, 5, 5, 5}), width(3), {.mode = "cubic", .antialias = true}), row({5, 5, 5}), 1e-6, 0);
}

TEST(Resize, CropAndExtrapolate) {
  const Options o{.mode = "linear", .coordinates = "tf_crop_and_resize", .roi = {0, 0, 0, -0.5f, 1, 1, 1, 1.0f}, .extrapolation = 9};
  expect_close(resize(row({1, 2, 3}), width(4), o), row({9, 1, 2, 3}));  // places -1, 0, 1, 2
  Options whole = o;
  whole.roi = {0, 0, 0, 0, 1, 1, 1, 1};
  expect_close(resize(row({1, 2, 3}), width(3), whole), row({1, 2, 3}));
  Options reversed = o;
  reversed.mode = "nearest";
  reversed.roi = {0, 0, 0, 1, 1, 1, 1, 0};
  expect_close(resize(row({1, 2, 3}), width(3), reversed), row({3, 2, 1}));
  Options bad = o;
  bad.roi = {0, 1};
  EXPECT_THROW(resize(row({1, 2, 3}), width(4), bad), InvalidModel);
}

TEST(Resize, AxesAndAspectRatio) {
  const Tensor x = random_f32({1, 2, 6, 4}, 3);
  EXPECT_EQ(resize(x, i64({2}, {8, 3}), {.axes = {-1, 2}}).shape(), (Shape{1, 2, 3, 8}));
  EXPECT_EQ(resize(x, i64({2}, {9, 8}), {.policy = "not_larger", .axes = {2, 3}}).shape(), (Shape{1, 2, 9, 6}));
  EXPECT_EQ(resize(x, i64({2}, {9, 8}), {.policy = "not_smaller", .axes = {2, 3}}).shape(), (Shape{1, 2, 12, 8}));
  EXPECT_EQ(resize(x, f32({2}, {0.5f, 1.3333334f}), {.axes = {2, 3}}).shape(), (Shape{1, 2, 3, 5}));
  EXPECT_EQ(resize(random_f32({6}, 1), f32({1}, {0.8333333f}), {}).shape(), (Shape{5}));  // 5/6 as a float is a little less
}

TEST(Resize, EveryLayoutAndType) {
  const Tensor x = random_f32({2, 19, 6, 7}, 3);
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const Tensor& to : {i64({4}, {2, 19, 13, 5}), i64({4}, {2, 19, 6, 14}), i64({4}, {3, 7, 4, 7})}) {
      const Tensor y = resize(x, to, {.mode = mode});
      expect_close(resize(x, to, {.mode = mode}, kPitched), y, 0, 0);
      EvaluateOptions half = kPitched;
      half.store_bf16 = true;
      expect_close(resize(x, to, {.mode = mode}, half), y, 1.0 / 64, 1.0 / 64);
    }
  }
  expect_close(resize(i64({2}, {1, 4}), f32({1}, {2}), {.mode = "linear"}), i64({4}, {1, 1, 3, 4}));  // 1, 1.75, 3.25, 4 cut
  const std::uint8_t bytes[] = {7, 250};
  expect_close(resize(Tensor::of<std::uint8_t>({2}, bytes), f32({1}, {1.5f}), {}),
               Tensor::of<std::uint8_t>({3}, std::vector<std::uint8_t>{7, 7, 250}));
  expect_close(resize(x, f32({4}, {1, 1, 1, 1}), {.mode = "cubic"}), x, 0, 0);
}

TEST(Resize, LinearAgainstDoublePrecision) {
  const Tensor x = random_f32({1, 3, 9, 5}, 8), y = resize(x, i64({4}, {1, 3, 4, 11}), {.mode = "linear"});
  const auto in = x.as<float>(), out = y.as<float>();
  const auto place = [](std::int64_t i, std::int64_t from, std::int64_t to, std::int64_t& low, std::int64_t& high) {
    const double c = (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5, f = std::floor(c);
    low = std::clamp<std::int64_t>(static_cast<std::int64_t>(f), 0, from - 1);
    high = std::clamp<std::int64_t>(static_cast<std::int64_t>(f) + 1, 0, from - 1);
    return c - f;
  };
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t j = 0; j < 11; ++j) {
        std::int64_t top, bottom, left, right;
        const double v = place(i, 9, 4, top, bottom), h = place(j, 5, 11, left, right);
        const auto at = [&](std::int64_t a, std::int64_t b) { return static_cast<double>(in[static_cast<std::size_t>((c * 9 + a) * 5 + b)]); };
        const double want = (1 - v) * ((1 - h) * at(top, left) + h * at(top, right)) + v * ((1 - h) * at(bottom, left) + h * at(bottom, right));
        EXPECT_NEAR(out[static_cast<std::size_t>((c * 4 + i) * 11 + j)], want, 1e-6);
      }
    }
  }
}

TEST(Resize, RefusesNonsense) {
  const Tensor x = row({1, 2});
  EXPECT_THROW(resize(x, f32({0}, {}), {}), InvalidModel);
  EXPECT_THROW(resize(x, f32({2}, {1, 2}), {}), InvalidModel);
  EXPECT_THROW(resize(x, scale(-1), {}), InvalidModel);
  EXPECT_THROW(resize(x, scale(NAN), {}), InvalidModel);
  EXPECT_THROW(resize(x, scale(INFINITY), {}), InvalidModel);
  EXPECT_THROW(resize(x, scale(1e30f), {}), InvalidModel);
  EXPECT_THROW(resize(x, i64({4}, {1, 1, 1, -2}), {}), InvalidModel);
  EXPECT_THROW(resize(Tensor(DType::kF32, {0}), i64({1}, {2}), {}), InvalidModel);
  EXPECT_EQ(resize(Tensor(DType::kF32, {0, 1, 2, 2}), f32({4}, {1, 1, 2, 2}), {.mode = "linear"}).shape(), (Shape{0, 1, 4, 4}));
  EXPECT_EQ(resize(x, scale(0.1f), {.mode = "linear"}).shape(), (Shape{1, 1, 1, 0}));
}

}  // namespace
}  // namespace tandem::test
