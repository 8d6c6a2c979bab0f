// The preprocessing record and what it does. Pixels come from Pillow 13.0 (Image.resize, Image.convert("L"), and the crop box of torchvision's
// CenterCrop, int(round((side - size) / 2)) with Python's rounding), applied to sample_image().
#include "io/preprocess.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "tests/io/message_of.h"
#include "tests/support/files.h"

namespace tandem::io {
namespace {

using test::message_of;

Image sample_image() {
  Image image{11, 7, {}};
  for (int y = 0; y < 7; ++y)
    for (int x = 0; x < 11; ++x)
      for (const int v : {x * 23 + y * 5, y * 37 + x * 3, x * y * 7 + 11}) image.rgb.push_back(static_cast<std::uint8_t>(v % 256));
  return image;
}

Preprocess record(int height, int width, ResizeKind resize = ResizeKind::kPilBicubic) {
  Preprocess p;
  p.height = height;
  p.width = width;
  p.resize = resize;
  p.layout = InputLayout::kNhwc;
  return p;
}

std::vector<float> applied(const Preprocess& p, const Image& image = sample_image()) {
  std::vector<float> out(static_cast<std::size_t>(p.sample_size()), -1);
  apply(p, image, out);
  return out;
}

const std::vector<float> kSquashed{30,  35,  18,  88,  43,  33,  150, 51,  49, 208, 59,  64,  41,  114, 35,  99,  122, 88,
                                   161, 130, 137, 219, 138, 142, 52,  193, 52, 110, 201, 138, 172, 209, 119, 204, 217, 92};

TEST(Preprocess, SquashIsPillowsResize) { EXPECT_EQ(applied(record(3, 4, ResizeKind::kPilBilinear)), kSquashed); }

TEST(Preprocess, GrayIsPillowsConvert) {
  Preprocess p = record(3, 4, ResizeKind::kPilBilinear);
  p.channels = Channels::kGray;
  p.mean = {0};
  p.std = {1};
  EXPECT_EQ(applied(p), (std::vector<float>{32, 55, 81, 104, 84, 111, 140, 162, 135, 166, 188, 199}));
}

TEST(Preprocess, CropIsTorchvisionsCenterCrop) {
  Preprocess p = record(4, 4);
  p.fit = Fit::kCrop;
  p.crop_pct = 0.8;  // 5 x 7; the box begins at round(0.5) = 0 and round(1.5) = 2
  EXPECT_EQ(applied(p), (std::vector<float>{80,  19,  17,  116, 24,  19,  152, 29,  22,  189, 34,  24,  87,  68,  49,  123,
                                            73,  66,  159, 78,  83,  196, 83,  102, 94,  121, 83,  130, 126, 115, 166, 131,
                                            158, 203, 136, 183, 101, 174, 117, 137, 179, 174, 173, 184, 165, 210, 189, 108}));
}

TEST(Preprocess, PadFillsBothSides) {
  Preprocess p = record(6, 4);  // 11 x 7 to 4 x 3 (7 * 4 / 11 = 2.5 rounds up), a row above, two below
  p.fit = Fit::kPad;
  p.pad_value = 114;
  const std::vector<float> middle{26,  30,  16,  86,  38,  29,  152, 46,  44, 212, 54,  63,  37,  114, 31,  97,  122, 86,
                                  163, 130, 148, 225, 138, 148, 48,  198, 46, 108, 206, 149, 177, 214, 119, 204, 222, 89};
  std::vector<float> expected(12, 114);
  expected.insert(expected.end(), middle.begin(), middle.end());
  expected.insert(expected.end(), 24, 114);
  EXPECT_EQ(applied(p), expected);
}

TEST(Preprocess, BorderLiesAroundTheResizedImage) {
  Preprocess p = record(6, 8, ResizeKind::kPilBilinear);
  p.pad = {1, 3, 2, 1};
  p.pad_value = 7;
  const auto out = applied(p);
  for (std::size_t y = 0; y < 6; ++y) {
    for (std::size_t x = 0; x < 8; ++x) {
      const bool inside = y >= 1 && y < 4 && x >= 3 && x < 7;
      for (std::size_t c = 0; c < 3; ++c)
        EXPECT_EQ(out[(y * 8 + x) * 3 + c], inside ? kSquashed[((y - 1) * 4 + x - 3) * 3 + c] : 7) << y << " " << x << " " << c;
    }
  }
}

TEST(Preprocess, ChannelsAndLayouts) {
  const Image image{2, 1, {10, 20, 30, 40, 50, 60}};
  Preprocess p = record(1, 2);
  p.mean = {1, 2, 3};
  p.std = {1, 2, 4};
  EXPECT_EQ(applied(p, image), (std::vector<float>{9, 9, 6.75f, 39, 24, 14.25f}));
  p.layout = InputLayout::kNchw;
  EXPECT_EQ(applied(p, image), (std::vector<float>{9, 39, 9, 24, 6.75f, 14.25f}));
  p.channels = Channels::kBgr;  // mean and std follow the network's channels
  EXPECT_EQ(applied(p, image), (std::vector<float>{29, 59, 9, 24, 1.75f, 9.25f}));
  p.layout = InputLayout::kNhwc;
  EXPECT_EQ(applied(p, image), (std::vector<float>{29, 9, 1.75f, 59, 24, 9.25f}));
}

Image all_values() {
  Image image{256, 1, {}};
  for (int v = 0; v < 256; ++v) image.rgb.insert(image.rgb.end(), 3, static_cast<std::uint8_t>(v));
  return image;
}

TEST(Preprocess, TfFamilyIsRoundedOnce) {
  Preprocess p = record(1, 256);
  set_family(p, "tf");
  const auto out = applied(p, all_values());
  for (int v = 0; v < 256; ++v) {
    const float x = out[static_cast<std::size_t>(3 * v)];
    // x / 127.5 - 1 = (2 v - 255) / 255, the float nearest to it.
    EXPECT_EQ(x, static_cast<float>((2.0L * v - 255) / 255)) << v;
    // Keras divides and subtracts in float, rounding twice: half a unit in the last place of numbers below 2.
    EXPECT_NEAR(x, static_cast<float>(v) / 127.5f - 1.0f, 0x1p-23) << v;
  }
  EXPECT_EQ(out.front(), -1);
  EXPECT_EQ(out.back(), 1);
}

TEST(Preprocess, OtherFamilies) {
  Preprocess p = record(1, 256);
  set_family(p, "torch");
  const auto torch = applied(p, all_values());
  const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
  for (std::size_t i = 0; i < torch.size(); ++i)
    EXPECT_NEAR(torch[i], (static_cast<double>(i / 3) / 255 - mean[i % 3]) / deviation[i % 3], 1e-6) << i;
  set_family(p, "caffe");
  EXPECT_EQ(p.channels, Channels::kBgr);
  EXPECT_EQ(applied(p, {1, 1, {1, 2, 3}}).size(), 768u);
  p = record(1, 1);
  set_family(p, "caffe");
  const auto caffe = applied(p, {1, 1, {200, 100, 50}});
  EXPECT_NEAR(caffe[0], 50 - 103.939, 1e-5);
  EXPECT_NEAR(caffe[1], 100 - 116.779, 1e-5);
  EXPECT_NEAR(caffe[2], 200 - 123.68, 1e-5);
  set_family(p, "none");
  EXPECT_EQ(p.channels, Channels::kRgb);
  EXPECT_EQ(applied(p, {1, 1, {200, 100, 50}}), (std::vector<float>{200, 100, 50}));
  EXPECT_THROW(set_family(p, "keras"), UsageError);
}

TEST(PreprocessJson, RoundTrip) {
  for (const ResizeKind kind : {ResizeKind::kPilBicubic, ResizeKind::kPilBilinear, ResizeKind::kTfBilinear, ResizeKind::kCvLinear,
                                ResizeKind::kCvArea, ResizeKind::kNearest}) {
    for (const Fit fit : {Fit::kSquash, Fit::kCrop, Fit::kPad}) {
      for (const Channels channels : {Channels::kRgb, Channels::kBgr, Channels::kGray}) {
        Preprocess p = record(299, 300, kind);
        p.fit = fit;
        p.crop_pct = 0.8975;
        p.pad = {1, 2, 3, 4};
        p.pad_value = 127.5;
        p.channels = channels;
        p.mean = {0.485f * 255, 0.1f, 1e-7f};
        p.std = {0.229f * 255, 1 / 3.0f, 3e7f};
        if (channels == Channels::kGray) p.mean.resize(1), p.std.resize(1);
        p.layout = fit == Fit::kPad ? InputLayout::kNchw : InputLayout::kNhwc;
        EXPECT_EQ(parse_preprocess(to_json(p)), p) << to_json(p);
      }
    }
  }
}

TEST(PreprocessJson, ReadsTheDocumentedForm) {
  const Preprocess p = parse_preprocess(R"({"version":1,"size":[224,192],"resize":"cv-area","fit":"crop","crop_pct":0.9,"pad":[1,2,3,4],"pad_value":5,
    "channels":"bgr","mean":[1,2,3],"std":[4,5,6],"layout":"nhwc"})");
  EXPECT_EQ(p.height, 224);
  EXPECT_EQ(p.width, 192);
  EXPECT_EQ(p.resize, ResizeKind::kCvArea);
  EXPECT_EQ(p.fit, Fit::kCrop);
  EXPECT_EQ(p.crop_pct, 0.9);
  EXPECT_EQ(p.pad, (std::array{1, 2, 3, 4}));
  EXPECT_EQ(p.pad_value, 5);
  EXPECT_EQ(p.channels, Channels::kBgr);
  EXPECT_EQ(p.mean, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(p.std, (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(p.layout, InputLayout::kNhwc);
  Preprocess defaults;
  defaults.height = defaults.width = 8;
  EXPECT_EQ(parse_preprocess(R"({"version":1,"size":[8,8]})"), defaults);
}

TEST(PreprocessJson, BadRecordsSayWhichField) {
  const auto why = [](const std::string& rest) {
    return message_of<InvalidData>([&] { parse_preprocess(R"({"version":1,"size":[8,8],)" + rest + "}"); });
  };
  for (const auto& [text, field] : {std::pair{R"("fit":"stretch")", "fit"},
                                    {R"("fit":1)", "fit"},
                                    {R"("resize":"lanczos")", "lanczos"},
                                    {R"("crop_pct":0)", "crop_pct"},
                                    {R"("crop_pct":1.5)", "crop_pct"},
                                    {R"("crop_pct":"x")", "crop_pct"},
                                    {R"("pad":[1,2])", "pad"},
                                    {R"("pad":[-1,0,0,0])", "pad"},
                                    {R"("pad":[4,0,4,0])", "pad"},
                                    {R"("pad_value":256)", "pad_value"},
                                    {R"("channels":"cmyk")", "channels"},
                                    {R"("mean":[1])", "mean"},
                                    {R"("mean":"0")", "mean"},
                                    {R"("std":[1,0,1])", "std"},
                                    {R"("std":[1,1e99,1])", "std"},
                                    {R"("channels":"gray")", "mean"},
                                    {R"("layout":"chwn")", "layout"},
                                    {R"("colour":1)", "colour"}}) {
    const std::string message = why(text);
    EXPECT_NE(message.find(field), std::string::npos) << text << ": " << message;
  }
  for (const char* text : {"", "[]", "{", "null", "{}", R"({"size":[8,8]})", R"({"version":2,"size":[8,8]})", R"({"version":1})",
                           R"({"version":1,"size":[8]})", R"({"version":1,"size":[0,8]})", R"({"version":1,"size":[-8,8]})",
                           R"({"version":1,"size":[100000,8]})", R"({"version":1,"size":8})", "{\"version\":1,\"size\":[8,8]"}) {
    EXPECT_THROW(parse_preprocess(text), InvalidData) << text;
  }
}

TEST(Labels, EveryForm) {
  const test::TemporaryFolder folder;
  const std::vector<std::string> labels{"tench", "great \"white\"", "b\xc3\xa4r"};
  EXPECT_EQ(parse_labels(labels_json(labels)), labels);
  EXPECT_EQ(read_labels(folder.write("l.txt", "tench\r\ngreat \"white\"\nb\xc3\xa4r\n\n")), labels);
  EXPECT_EQ(read_labels(folder.write("l.txt", "\xef\xbb\xbftench\r\ngreat \"white\"\nb\xc3\xa4r\n")), labels);
  EXPECT_EQ(read_labels(folder.write("l.json", labels_json(labels))), labels);
  EXPECT_EQ(read_labels(folder.write("i.json", R"({"1":["n02","shark"],"0":["n01","tench"]})")), (std::vector<std::string>{"tench", "shark"}));
  for (const char* text : {"", "[1]", "[\"a\"", "{\"1\":[\"n\",\"x\"]}", "{\"0\":[]}", "{\"0\":\"x\"}"})
    EXPECT_THROW(read_labels(folder.write("bad", text)), InvalidData) << text;
  EXPECT_THROW(parse_labels("{}"), InvalidData);
}

}  // namespace
}  // namespace tandem::io
