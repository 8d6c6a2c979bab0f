// Pixels are compared with Pillow's (tests/data/images/make.py), bit for bit.
#include "io/image.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/io/image_files.h"

namespace tandem::io {
namespace {

using test::image_bytes;
using test::image_path;

class Pixels : public testing::TestWithParam<const char*> {};

TEST_P(Pixels, AreThoseOfPillow) {
  const Image image = load_image(image_path(GetParam()));
  const std::vector<std::uint8_t> expected = image_bytes(std::string(GetParam()) + ".rgb");
  ASSERT_EQ(image.rgb.size(), expected.size());
  ASSERT_EQ(image.rgb.size(), static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) * 3);
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(int{image.rgb[i]}, int{expected[i]}) << "channel " << i % 3 << " of pixel " << i / 3 << ", width " << image.width;
}

std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (c == '.') c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Jpeg, Pixels,
                         testing::Values("rgb444.jpg", "rgb422.jpg", "rgb420.jpg", "one_pixel.jpg", "gray.jpg", "progressive.jpg", "low_quality.jpg",
                                         "cmyk_adobe.jpg", "cmyk_no_marker.jpg", "ycck_adobe.jpg", "exif6.jpg"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Png, Pixels,
                         testing::Values("rgb.png", "rgba.png", "gray.png", "gray_alpha.png", "palette.png", "palette4.png",
                                         "palette_transparent.png", "one_bit.png", "gray2.png", "gray4.png", "gray16.png", "gray16_interlaced.png",
                                         "rgb16.png", "rgba16.png", "gray_alpha16.png", "rgb_interlaced.png", "png_named.jpg"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Bmp, Pixels,
                         testing::Values("rgb24.bmp", "gray8.bmp", "palette8.bmp", "palette4.bmp", "one_bit.bmp", "rgba32.bmp", "top_down.bmp",
                                         "bits555.bmp", "bits565.bmp", "bits32.bmp"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Webp, Pixels, testing::Values("lossy.webp", "lossless.webp", "lossless_alpha.webp", "lossy_alpha.webp"), test_name);

class Upright : public testing::TestWithParam<const char*> {};

TEST_P(Upright, TurnsAsPillowsExifTransposeOnRequestOnly) {
  DecodeOptions options;
  options.exif_orientation = true;
  EXPECT_EQ(load_image(image_path(GetParam()), options).rgb, image_bytes(std::string(GetParam()) + ".upright.rgb"));
  EXPECT_EQ(load_image(image_path(GetParam())).rgb, image_bytes(std::string(GetParam()) + ".rgb"));
}
INSTANTIATE_TEST_SUITE_P(Exif, Upright,
                         testing::Values("exif1.jpg", "exif2.jpg", "exif3.jpg", "exif4.jpg", "exif5.jpg", "exif6.jpg", "exif7.jpg", "exif8.jpg",
                                         "exif6.png", "exif6.webp"),
                         test_name);

TEST(Exif, DamagedBlocksAreUpright) {
  const std::vector<std::uint8_t> block = {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0};
  EXPECT_EQ(exif_orientation(block), 6);
  for (std::size_t n = 0; n < block.size(); ++n) EXPECT_EQ(exif_orientation(std::span(block).first(n)), 1) << n;
  std::vector<std::uint8_t> far = block;
  far[4] = far[5] = far[6] = far[7] = 0xff;
  EXPECT_EQ(exif_orientation(far), 1);
}

// The message of the InvalidData (or Unsupported) that decoding throws; empty when it succeeds.
std::string failure(std::span<const std::uint8_t> bytes, const DecodeOptions& options = {}) {
  try {
    decode_image(bytes, options);
  } catch (const Error& e) {
    return e.message();
  }
  return {};
}

class Truncated : public testing::TestWithParam<const char*> {};

TEST_P(Truncated, IsDamageWhereverItIsCut) {
  const std::vector<std::uint8_t> bytes = image_bytes(GetParam());
  ASSERT_EQ(failure(bytes), "");
  for (const std::size_t kept :
       {std::size_t{0}, std::size_t{2}, std::size_t{13}, bytes.size() / 100, bytes.size() / 2, bytes.size() * 99 / 100, bytes.size() - 1})
    EXPECT_NE(failure(std::span(bytes).first(kept)), "") << kept << " of " << bytes.size() << " bytes";
}
INSTANTIATE_TEST_SUITE_P(Formats, Truncated,
                         testing::Values("rgb420.jpg", "progressive.jpg", "gray.jpg", "rgb.png", "rgb_interlaced.png", "gray16.png", "rgb24.bmp",
                                         "palette8.bmp", "lossy.webp", "lossless.webp", "lossy_alpha.webp"),
                         test_name);

TEST(Decode, RefusesBombsBeforeTakingMemory) {
  EXPECT_NE(failure(image_bytes("bomb.png")).find("50000x50000, more than the limit of 100000000 pixels"), std::string::npos);
  DecodeOptions small;
  small.limits.max_pixels = 37 * 23 - 1;
  for (const char* name : {"rgb420.jpg", "rgb.png", "rgb24.bmp", "lossy.webp"})
    EXPECT_NE(failure(image_bytes(name), small).find("37x23, more than the limit"), std::string::npos) << name;
  small.limits = {};
  small.limits.max_bytes = 37 * 23 * 5;
  EXPECT_EQ(failure(image_bytes("rgb420.jpg"), small), "");
  EXPECT_NE(failure(image_bytes("progressive.jpg"), small).find("decoding this 37x23 image takes"), std::string::npos);
}

// A file of `scans` equal, legal first DC scans.
std::vector<std::uint8_t> many_scans(int scans) {
  const std::vector<std::uint8_t> base = image_bytes("progressive.jpg");
  const auto find = [&](std::size_t from, std::uint8_t marker) {
    for (std::size_t i = from; i + 1 < base.size(); ++i)
      if (base[i] == 0xff && base[i + 1] == marker) return i;
    return base.size();
  };
  const std::size_t start = find(0, 0xda);
  std::size_t end = start + 2;
  while (!(base[end] == 0xff && base[end + 1] != 0)) ++end;
  std::vector<std::uint8_t> scan(base.begin() + static_cast<std::ptrdiff_t>(start), base.begin() + static_cast<std::ptrdiff_t>(end));
  scan[3 + scan[3] - 2] = 0;  // last byte of the scan's header: no successive approximation
  std::vector<std::uint8_t> file(base.begin(), base.begin() + static_cast<std::ptrdiff_t>(start));
  for (int i = 0; i < scans; ++i) file.insert(file.end(), scan.begin(), scan.end());
  file.insert(file.end(), {0xff, 0xd9});
  return file;
}

TEST(Decode, CapsTheScansOfAJpeg) {
  EXPECT_EQ(failure(many_scans(1)), "");
  EXPECT_EQ(failure(many_scans(400)), "");
  EXPECT_NE(failure(many_scans(20000)).find("more JPEG scans than the limit"), std::string::npos);
  DecodeOptions options;
  options.limits.max_scan_pixels = 37 * 23 * 10;
  EXPECT_EQ(failure(many_scans(10), options), "");
  EXPECT_NE(failure(many_scans(11), options).find("for an image of this size"), std::string::npos);
}

TEST(Decode, NamesWhatItDoesNotRead) {
  EXPECT_THROW(load_image(image_path("animated.gif")), Unsupported);
  EXPECT_NE(failure(image_bytes("animated.gif")).find("a GIF image"), std::string::npos);
  EXPECT_NE(failure(image_bytes("animated.webp")).find("animated WebP"), std::string::npos);
  EXPECT_EQ(failure({}), "the file is empty, expected an image");
  const std::string text = "path,label\n";
  EXPECT_NE(failure({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}).find("not an image"), std::string::npos);
}

TEST(Decode, EveryByteChangedIsAnImageOrAnError) {
  for (const char* name :
       {"rgb420.jpg", "progressive.jpg", "cmyk_adobe.jpg", "palette.png", "rgb_interlaced.png", "gray8.bmp", "bits565.bmp", "lossy.webp"}) {
    const std::vector<std::uint8_t> good = image_bytes(name);
    for (std::size_t at = 0; at < good.size(); at += 1 + good.size() / 150)
      for (const int flip : {0x01, 0x80, 0xff}) {
        std::vector<std::uint8_t> bad = good;
        bad[at] = static_cast<std::uint8_t>(bad[at] ^ flip);
        DecodeOptions options;
        options.exif_orientation = true;
        options.limits.max_pixels = 1'000'000;
        failure(bad, options);  // must come back
      }
  }
}

TEST(LoadImage, NamesTheFileAndOpensOnlyRegularFiles) {
  try {
    load_image(image_path("no such\nfile.jpg"));
    FAIL();
  } catch (const InvalidData& e) {
    EXPECT_NE(std::string(e.what()).find("no such\\x0afile.jpg\": No such file"), std::string::npos) << e.what();
  }
  EXPECT_THROW(load_image(image_path("")), InvalidData);
  EXPECT_THROW(load_image("/dev/zero"), InvalidData);
  try {
    load_image(image_path("make.py"));
    FAIL();
  } catch (const InvalidData& e) {
    EXPECT_NE(std::string(e.what()).find("make.py"), std::string::npos);
  }
}

}  // namespace
}  // namespace tandem::io
