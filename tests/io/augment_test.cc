#include "io/augment.h"

#include <gtest/gtest.h>

#include <cmath>

#include "io/preprocess.h"
#include "runtime/base/error.h"
#include "tests/io/message_of.h"

namespace tandem::io {
namespace {

using Floats = std::vector<float>;

void expect_near(const Floats& got, const Floats& expected, float tolerance = 1e-4f) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], tolerance) << i;
}

// ---- pixels, by hand

TEST(Canvas, Flips) {
  Canvas c{2, 3, 2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  flip_horizontal(c);
  EXPECT_EQ(c.values, (Floats{5, 6, 3, 4, 1, 2, 11, 12, 9, 10, 7, 8}));
  flip_vertical(c);
  EXPECT_EQ(c.values, (Floats{11, 12, 9, 10, 7, 8, 5, 6, 3, 4, 1, 2}));
}

TEST(Canvas, LayoutsGoThereAndBack) {
  const Floats planes = {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16};
  const Canvas c = canvas_of(planes, InputLayout::kNchw, 2, 3, 2);
  EXPECT_EQ(c.values, (Floats{1, 11, 2, 12, 3, 13, 4, 14, 5, 15, 6, 16}));
  Floats back(12);
  write_sample(c, InputLayout::kNchw, back);
  EXPECT_EQ(back, planes);
  write_sample(c, InputLayout::kNhwc, back);
  EXPECT_EQ(back, c.values);
}

TEST(Canvas, PlacedLeavesABorder) {
  const Canvas c{2, 2, 1, {1, 2, 3, 4}};
  EXPECT_EQ(placed(c, 1, 0, 2, 2, 9).values, (Floats{9, 9, 1, 2}));
  EXPECT_EQ(placed(c, -1, -1, 2, 2, 9).values, (Floats{4, 9, 9, 9}));
  EXPECT_EQ(placed(c, 0, 5, 2, 2, 9).values, (Floats{9, 9, 9, 9}));
}

TEST(Canvas, RotatesCounterClockwise) {
  const Canvas c{3, 3, 1, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  const Floats fill = {100};
  Canvas quarter = c, half = c, eighth = c;
  rotate(quarter, 90, fill);
  expect_near(quarter.values, {3, 6, 9, 2, 5, 8, 1, 4, 7});
  rotate(half, 180, fill);
  expect_near(half.values, {9, 8, 7, 6, 5, 4, 3, 2, 1});
  rotate(eighth, 45, fill);
  // The upper left corner comes from (1 - sqrt 2, 1) right and down of the top edge's middle: a pixel outside with the share sqrt 2 - 1.
  const float outside = std::sqrt(2.0f) - 1;
  EXPECT_NEAR(eighth.values[4], 5, 1e-4f);
  EXPECT_NEAR(eighth.values[0], 100 * outside + 2 * (1 - outside), 1e-4f);
}

TEST(Canvas, ErasesARectangle) {
  Canvas c{2, 3, 2, Floats(12, 1)};
  erase(c, {0, 1, 2, 1}, Floats{7, 8});
  EXPECT_EQ(c.values, (Floats{1, 1, 7, 8, 1, 1, 1, 1, 7, 8, 1, 1}));
}

TEST(Canvas, ColoursByHand) {
  Canvas bright{1, 1, 3, {100, 200, 0}};
  adjust_brightness(bright, 1.5f);
  expect_near(bright.values, {150, 255, 0});
  Canvas contrast{1, 2, 3, {100, 100, 100, 200, 200, 200}};  // mean 150
  adjust_contrast(contrast, 0.5f);
  expect_near(contrast.values, {125, 125, 125, 175, 175, 175});
  adjust_contrast(contrast, 9);  // beyond, cut
  expect_near(contrast.values, {0, 0, 0, 255, 255, 255});
  Canvas one{1, 2, 1, {10, 30}};
  adjust_contrast(one, 0);
  expect_near(one.values, {20, 20});
  Canvas saturation{1, 1, 3, {100, 200, 50}};  // gray 29.9 + 117.4 + 5.7 = 153
  adjust_saturation(saturation, 0.5f);
  expect_near(saturation.values, {126.5f, 176.5f, 101.5f});
  adjust_saturation(one, 0);
  adjust_hue(one, 0.3f);
  expect_near(one.values, {20, 20});
}

TEST(Canvas, HuesByHand) {
  const auto turned = [](const Floats& rgb, float turn) {
    Canvas c{1, 1, 3, rgb};
    adjust_hue(c, turn);
    return c.values;
  };
  expect_near(turned({255, 0, 0}, 1.0f / 3), {0, 255, 0}, 1e-3f);
  expect_near(turned({255, 0, 0}, -1.0f / 3), {0, 0, 255}, 1e-3f);
  expect_near(turned({255, 0, 0}, 0.5f), {0, 255, 255});
  expect_near(turned({200, 100, 50}, 0.5f), {50, 150, 200}, 1e-3f);  // 20 degrees to 200, saturation 3/4, value 200
  expect_near(turned({50, 60, 200}, 0), {50, 60, 200}, 1e-3f);
  expect_near(turned({77, 77, 77}, 0.25f), {77, 77, 77});
  expect_near(turned({0, 0, 0}, 0.25f), {0, 0, 0});
}

// ---- draws, from an implementation of Philox and of these rules in Python

constexpr AugmentKey key(std::int64_t index) { return {5, 2, index}; }

Augmentation words(const std::string& text) { return parse_augmentation(text); }

void expect_window(const Window& w, int y, int x, int height, int width) {
  EXPECT_EQ(w.y, y);
  EXPECT_EQ(w.x, x);
  EXPECT_EQ(w.height, height);
  EXPECT_EQ(w.width, width);
}

TEST(Augment, ResizedCrops) {
  const Augmentation a = words("resized-crop");
  expect_window(draw_resized_crop(a, key(0), 40, 60), 3, 1, 28, 23);
  expect_window(draw_resized_crop(a, key(1), 40, 60), 2, 6, 38, 42);
  expect_window(draw_resized_crop(a, key(2), 40, 60), 5, 26, 29, 28);
  // No window of nine tenths has a ratio of 4/3 or less: the middle.
  expect_window(draw_resized_crop(words("resized-crop=0.9:1"), key(0), 40, 60), 0, 3, 40, 53);
  expect_window(draw_resized_crop(words("resized-crop=1:1"), key(0), 60, 30), 10, 0, 40, 30);
  for (std::int64_t i = 0; i < 2000; ++i) {
    const Window w = draw_resized_crop(a, key(i), 37, 50);
    ASSERT_TRUE(w.y >= 0 && w.x >= 0 && w.height >= 1 && w.width >= 1 && w.y + w.height <= 37 && w.x + w.width <= 50);
  }
}

Canvas numbered(int height, int width) {
  Canvas c{height, width, 1, {}};
  for (int k = 1; k <= height * width; ++k) c.values.push_back(static_cast<float>(k));
  return c;
}

TEST(Augment, CropsAndFlips) {
  const Floats mean = {0};
  const int shifts[][2] = {{2, -1}, {2, 2}, {-1, 1}, {-2, 1}};
  const bool left_right[] = {false, true, false, true, false, false, true, true}, up_down[] = {true, false, true, true, true, false, false, false};
  for (std::int64_t i = 0; i < 8; ++i) {
    Canvas flipped = numbered(3, 4), expected = numbered(3, 4);
    augment(flipped, words("flip,vflip"), key(i), 0, mean);
    if (left_right[i]) flip_horizontal(expected);
    if (up_down[i]) flip_vertical(expected);
    EXPECT_EQ(flipped.values, expected.values) << i;
    if (i >= 4) continue;
    Canvas moved = numbered(5, 6);
    augment(moved, words("crop=2"), key(i), 77, mean);
    EXPECT_EQ(moved.values, placed(numbered(5, 6), shifts[i][0], shifts[i][1], 5, 6, 77).values) << i;
  }
}

TEST(Augment, ErasesWhatIsDrawn) {
  const Floats mean = {-3};
  const std::optional<Window> boxes[] = {std::nullopt, Window{7, 5, 3, 6}, Window{2, 6, 8, 4}, Window{5, 5, 4, 2}};
  for (std::int64_t i = 0; i < 4; ++i) {
    Canvas c = numbered(10, 12), expected = numbered(10, 12);
    augment(c, words("erase=0.5"), key(i), 0, mean);
    if (boxes[i]) erase(expected, *boxes[i], mean);
    EXPECT_EQ(c.values, expected.values) << i;
  }
}

TEST(Augment, OneChangeDoesNotMoveAnother) {
  const Floats mean = {0};
  for (std::int64_t i = 0; i < 20; ++i) {
    Canvas alone = numbered(6, 6), first = numbered(6, 6);
    augment(alone, words("flip"), key(i), 0, mean);
    augment(first, words("crop=1"), key(i), 0, mean);
    augment(first, words("flip"), key(i), 0, mean);
    Canvas both = numbered(6, 6);
    augment(both, words("flip,crop=1"), key(i), 0, mean);
    EXPECT_EQ(both.values, first.values);
  }
}

TEST(Augment, ColourFactorsLieInTheirRanges) {
  const Floats mean = {0, 0, 0};
  float least = 1000, most = 0;
  for (std::int64_t i = 0; i < 500; ++i) {
    Canvas c{1, 1, 3, {100, 100, 100}};
    augment(c, words("brightness=0.4"), key(i), 0, mean);
    least = std::min(least, c.values[0]);
    most = std::max(most, c.values[0]);
  }
  EXPECT_TRUE(least >= 60 - 1e-3f && least < 61) << least;
  EXPECT_TRUE(most <= 140 + 1e-3f && most > 139) << most;
}

TEST(Augment, MixesFromThePythonImplementation) {
  const auto expect = [](const Mix& m, std::int64_t partner, float own) {
    EXPECT_EQ(m.partner, partner);
    EXPECT_NEAR(m.own, own, 1e-6f);
  };
  const std::pair<std::int64_t, float> both[] = {{7, 0.9967653684f}, {7, 0.9924978329f}, {4, 0.3952393940f}, {5, 0.4192732366f}};
  for (std::int64_t i = 0; i < 4; ++i) {
    const Mix m = draw_mix(words("mixup,cutmix"), key(i), i, 8, 20, 30);
    expect(m, both[i].first, both[i].second);
    EXPECT_FALSE(m.box);
  }
  expect(draw_mix(words("mixup"), key(0), 0, 8, 20, 30), 7, 0.9967653684f);
  const Mix box = draw_mix(words("cutmix"), key(0), 0, 8, 20, 30);
  expect(box, 7, 0.65f);
  ASSERT_TRUE(box.box);
  expect_window(*box.box, 0, 16, 15, 14);
  EXPECT_FLOAT_EQ(draw_mix(words("mixup"), key(0), 0, 1, 20, 30).own, 1);
  EXPECT_EQ(draw_mix(words("flip"), key(0), 3, 8, 20, 30).partner, 3);
}

// Beta(a, a) has mean 1/2 and variance 1 / (4 (2 a + 1)).
TEST(Augment, SharesAreBetaDistributed) {
  for (const double alpha : {0.2, 1.0, 4.0}) {
    Augmentation a;
    a.mixup = static_cast<float>(alpha);
    constexpr int kDraws = 20000;
    double sum = 0, squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const auto own = static_cast<double>(draw_mix(a, key(i), 0, 8, 1, 1).own);
      sum += own;
      squares += (own - 0.5) * (own - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(sum / kDraws, 0.5, 6 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws, variance, 0.05 * variance) << alpha;
  }
}

// ---- words

TEST(ParseAugmentation, ReadsWordsAndValues) {
  const Augmentation a = words("flip,vflip=0.1,crop=4,resized-crop=0.5:0.75,rotate=15,color=0.2,hue,erase,mixup,cutmix=0.5");
  EXPECT_EQ(a.flip, 0.5f);
  EXPECT_EQ(a.vertical_flip, 0.1f);
  EXPECT_EQ(a.crop, 4);
  EXPECT_EQ(a.resized_crop, (std::array<float, 2>{0.5f, 0.75f}));
  EXPECT_EQ(a.rotate, 15);
  EXPECT_EQ(a.brightness, 0.2f);
  EXPECT_EQ(a.saturation, 0.2f);
  EXPECT_EQ(a.hue, 0.1f);
  EXPECT_EQ(a.erase, 0.25f);
  EXPECT_EQ(a.mixup, 0.2f);
  EXPECT_EQ(a.cutmix, 0.5f);
  EXPECT_EQ(words("crop").crop, -1);
  for (const char* bad :
       {"", "flip,", "flop", "flip=2", "flip=", "flip=x", "crop=1.5", "resized-crop=0.5", "resized-crop=0.9:0.1", "mixup=0", "hue=0.6"})
    EXPECT_NE(test::message_of<UsageError>([&] { words(bad); }).find("--augment"), std::string::npos) << bad;
}

}  // namespace
}  // namespace tandem::io
