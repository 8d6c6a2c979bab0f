// Results are compared with Pillow's, OpenCV's and TensorFlow's (tests/data/resize/make.py), bit for bit.
#include "io/resize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "tests/io/image_files.h"

namespace tandem::io {
namespace {

enum class Source { kWide, kTall, kEven };
struct Size {
  Source source;
  int height, width;
};
constexpr Size kSizes[] = {{Source::kWide, 11, 16}, {Source::kWide, 40, 50}, {Source::kWide, 7, 60},  {Source::kWide, 23, 10},
                           {Source::kWide, 10, 37}, {Source::kWide, 1, 1},   {Source::kTall, 12, 20}, {Source::kEven, 11, 18},
                           {Source::kEven, 22, 12}, {Source::kEven, 2, 9}};

Pixels picture(Source source) {
  Pixels p{23, 37, 3, test::image_bytes("rgb.png.rgb")};
  if (source == Source::kTall) std::swap(p.height, p.width);
  if (source == Source::kEven) {
    Pixels even{22, 36, 3, {}};
    for (int y = 0; y < 22; ++y) even.data.insert(even.data.end(), p.data.begin() + y * 37 * 3, p.data.begin() + y * 37 * 3 + 36 * 3);
    return even;
  }
  return p;
}

std::vector<std::uint8_t> expected(ResizeKind kind) {
  return test::bytes_of(TANDEM_SOURCE_DIR "/tests/data/resize/" + std::string(name_of(kind)) + ".bin");
}

class Resize : public testing::TestWithParam<ResizeKind> {};

TEST_P(Resize, EqualsTheLibraryBitForBit) {
  const std::vector<std::uint8_t> all = expected(GetParam());
  std::size_t at = 0;
  for (const auto& [source, height, width] : kSizes) {
    const Pixels out = resize(GetParam(), picture(source).view(), height, width);
    ASSERT_EQ(out.data.size(), static_cast<std::size_t>(height * width * 3));
    ASSERT_LE(at + out.data.size(), all.size());
    for (std::size_t i = 0; i < out.data.size(); ++i) ASSERT_EQ(int{out.data[i]}, int{all[at + i]}) << width << "x" << height << " at " << i;
    at += out.data.size();
  }
  EXPECT_EQ(at, all.size());
}

TEST_P(Resize, TreatsEveryChannelAlike) {
  const Pixels rgb = picture(Source::kWide);
  for (const int channels : {1, 2, 4}) {
    Pixels in{23, 37, channels, {}};
    for (std::size_t i = 0; i < rgb.data.size(); i += 3)
      for (int c = 0; c < channels; ++c) in.data.push_back(rgb.data[i + 1]);
    const Pixels whole = resize(GetParam(), rgb.view(), 14, 30), out = resize(GetParam(), in.view(), 14, 30);
    for (std::size_t i = 0; i < whole.data.size() / 3; ++i)
      for (int c = 0; c < channels; ++c)
        ASSERT_EQ(int{out.data[i * static_cast<std::size_t>(channels) + static_cast<std::size_t>(c)]}, int{whole.data[3 * i + 1]});
  }
}

TEST_P(Resize, ComputesAWindowWithTheBitsOfTheWhole) {
  const Window windows[] = {{0, 0, 1, 1}, {2, 3, 4, 5}, {1, 0, 6, 9}, {0, 2, 2, 7}};
  for (const auto& [source, height, width] : {Size{Source::kWide, 11, 16},
                                              {Source::kWide, 40, 50},
                                              {Source::kWide, 23, 37},
                                              {Source::kWide, 23, 10},
                                              {Source::kWide, 10, 37},
                                              {Source::kTall, 12, 20},
                                              {Source::kEven, 11, 18},
                                              {Source::kEven, 11, 9}}) {
    const Pixels whole = resize(GetParam(), picture(source).view(), height, width);
    for (const Window& w : windows) {
      const Pixels part = resize(GetParam(), picture(source).view(), height, width, w);
      ASSERT_EQ(part.data.size(), static_cast<std::size_t>(w.height * w.width * 3));
      for (int y = 0; y < w.height; ++y)
        ASSERT_EQ(std::memcmp(&part.data[static_cast<std::size_t>(y * w.width * 3)],
                              &whole.data[static_cast<std::size_t>(((w.y + y) * width + w.x) * 3)], static_cast<std::size_t>(w.width * 3)),
                  0)
            << width << "x" << height << ", window at " << w.x << "," << w.y << ", row " << y;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Resize,
                         testing::Values(ResizeKind::kPilBicubic, ResizeKind::kPilBilinear, ResizeKind::kNearest, ResizeKind::kCvLinear,
                                         ResizeKind::kCvArea),
                         [](const auto& kind) {
                           std::string name(name_of(kind.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ResizeTf, EqualsTensorFlow) {
  const std::vector<std::uint8_t> all = expected(ResizeKind::kTfBilinear);
  std::size_t at = 0;
  for (const auto& [source, height, width] : kSizes) {
    std::vector<float> out(static_cast<std::size_t>(height * width * 3)), right(out.size());
    resize_tf_bilinear(picture(source).view(), height, width, out);
    ASSERT_LE(at + 4 * out.size(), all.size());
    std::memcpy(right.data(), all.data() + at, 4 * out.size());
    ASSERT_EQ(out, right) << width << "x" << height;
    at += 4 * out.size();
  }
  EXPECT_EQ(at, all.size());
}

TEST(ResizeKinds, HaveNames) {
  for (const char* name : {"pil-bicubic", "pil-bilinear", "tf-bilinear", "cv-linear", "cv-area", "nearest"})
    EXPECT_EQ(name_of(resize_kind(name)), name);
  try {
    resize_kind("bicubic");
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_EQ(e.message(), "unknown resize \"bicubic\", expected one of pil-bicubic, pil-bilinear, tf-bilinear, cv-linear, cv-area, nearest");
  }
  EXPECT_THROW(resize(ResizeKind::kPilBicubic, picture(Source::kWide).view(), 0, 5), UsageError);
}

}  // namespace
}  // namespace tandem::io
