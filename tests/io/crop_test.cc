// The cropping rule of torchvision and timm, whose numbers are worked out by hand.
#include <gtest/gtest.h>

#include "io/preprocess.h"
#include "runtime/base/error.h"

namespace tandem::io {
namespace {

// Red counts columns, green counts rows.
Image ramp(int height, int width) {
  Image image{width, height, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) image.rgb.insert(image.rgb.end(), {static_cast<std::uint8_t>(x), static_cast<std::uint8_t>(y), 7});
  return image;
}

Preprocess crop(int height, int width, double crop_pct) {
  Preprocess p;
  p.height = height;
  p.width = width;
  p.resize = ResizeKind::kNearest;
  p.fit = Fit::kCrop;
  p.crop_pct = crop_pct;
  p.layout = InputLayout::kNhwc;
  return p;
}

TEST(Crop, CutsTheMiddleOfTheShortSide) {
  // 8 / 0.8 = 10: the image of 10 x 20 keeps its size; rows 1..8, columns 6..13.
  std::vector<float> out(8 * 8 * 3);
  apply(crop(8, 8, 0.8), ramp(10, 20), out);
  EXPECT_EQ(out[0], 6);
  EXPECT_EQ(out[1], 1);
  EXPECT_EQ(out[out.size() - 3], 13);
  EXPECT_EQ(out[out.size() - 2], 8);
}

TEST(Crop, CoversATargetThatIsNotSquare) {
  // 4 x 8 from 16 x 16 at crop_pct 1: resized to 8 x 8 (every second pixel), rows 2..5 of it. Nothing is filled.
  std::vector<float> out(4 * 8 * 3);
  apply(crop(4, 8, 1), ramp(16, 16), out);
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], 5);
  EXPECT_EQ(out[out.size() - 3], 15);
  EXPECT_EQ(out[out.size() - 2], 11);
}

TEST(Crop, OfALongThinImageTakesNoMemoryForTheRest) {
  Preprocess p = crop(299, 299, 0.875);
  std::vector<float> out(static_cast<std::size_t>(p.sample_size()));
  const Image thin{60000, 1, std::vector<std::uint8_t>(180000, 9)};  // resized whole: 341 x 20,460,000
  for (const ResizeKind kind : {ResizeKind::kPilBicubic, ResizeKind::kNearest, ResizeKind::kCvLinear}) {
    p.resize = kind;
    apply(p, thin, out);
    EXPECT_EQ(out.front(), 9);
    EXPECT_EQ(out.back(), 9);
  }
  p.resize = ResizeKind::kTfBilinear;
  EXPECT_THROW(apply(p, thin, out), InvalidData);
}

}  // namespace
}  // namespace tandem::io
