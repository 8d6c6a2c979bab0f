// From an image to a network's input: the record that travels with a model (metadata `tandem.preprocess` and `tandem.labels`), and what it
// does. JSON: {"version":1,"size":[h,w],"resize":"pil-bicubic","fit":"squash|crop|pad","crop_pct":0.875,"pad":[t,l,b,r],"pad_value":0,
// "channels":"rgb|bgr|gray","mean":[..],"std":[..],"layout":"nhwc|nchw"}.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/canvas.h"
#include "io/image.h"
#include "io/resize.h"

namespace tandem::io {

enum class Fit { kSquash, kCrop, kPad };
enum class Channels { kRgb, kBgr, kGray };

struct Preprocess {
  int height = 0, width = 0;  // of the network's input, `pad` included
  ResizeKind resize = ResizeKind::kPilBicubic;
  // kSquash: both sides to the target. kCrop: the short side to floor(target / crop_pct), then the middle. kPad: the long side to the
  // target, the rest filled with pad_value on both sides.
  Fit fit = Fit::kSquash;
  double crop_pct = 0.875;
  std::array<int, 4> pad = {0, 0, 0, 0};  // top, left, bottom, right: a border of pad_value around the resized image
  double pad_value = 0;                   // on the 0..255 scale
  Channels channels = Channels::kRgb;
  std::vector<float> mean = {0, 0, 0}, std = {1, 1, 1};  // x = (v - mean) / std on 0..255, in the order of the network's channels
  InputLayout layout = InputLayout::kNchw;

  int channel_count() const { return channels == Channels::kGray ? 1 : 3; }
  std::int64_t sample_size() const { return std::int64_t{height} * width * channel_count(); }
  bool operator==(const Preprocess&) const = default;
};

// Throw InvalidData saying which field is wrong. Unknown fields are refused, missing ones keep their defaults (size is required).
Preprocess parse_preprocess(const std::string& json);
std::string to_json(const Preprocess&);
// Checks sizes, lists and ranges. Throws UsageError naming the field.
void check(const Preprocess&);

// Keras' families: "tf" (x / 127.5 - 1), "torch" (ImageNet mean and deviation), "caffe" (BGR, means taken out), "none" (0..255 as they
// are). Sets channels, mean and std. Throws UsageError for another word.
void set_family(Preprocess&, const std::string& family);

Fit fit_of(const std::string& word);                   // "squash" "crop" "pad"; UsageError
Channels channels_of(const std::string& word);         // "rgb" "bgr" "gray"
InputLayout input_layout_of(const std::string& word);  // "nchw" "nhwc"

// Writes sample_size() floats. Pure; safe from any thread.
void apply(const Preprocess&, const Image&, std::span<float> out);
// Its two halves: the image at the network's size on the 0..255 scale (RGB or gray), and the network's input from it. `part`: only that window of
// the image, squashed to the size inside `pad`.
Canvas to_canvas(const Preprocess&, const Image&, const std::optional<Window>& part = {});
void normalise(const Preprocess&, const Canvas&, std::span<float> out);

// Labels in output order: a JSON array of strings.
std::vector<std::string> parse_labels(const std::string& json);
std::string labels_json(std::span<const std::string> labels);
// A labels file: one per line (labels.txt), a JSON array, or ImageNet's class index ({"0": ["n01440764", "tench"], ...}).
std::vector<std::string> read_labels(const std::string& file);

}  // namespace tandem::io
