// Random changes of training samples. What is drawn belongs to (seed, pass over the data, index in the data set) and the kind of change, so it
// depends on neither threads nor batches nor the other changes that are on.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "io/canvas.h"

namespace tandem::io {

// What may happen to a sample; everything is off where it is 0. In this order: resized crop, crop, flips, rotation, colours, erasing; then mixing
// within the batch.
struct Augmentation {
  std::array<float, 2> resized_crop = {0, 0};  // least and most of the image's area; its sides' ratio lies in 3/4 to 4/3 (torchvision)
  int crop = 0;                                // pixels of border (the record's pad_value) that the window may move into; -1: an eighth of the side
  float flip = 0, vertical_flip = 0;           // probabilities
  float rotate = 0;                            // degrees either way at most
  float brightness = 0, contrast = 0, saturation = 0;  // factors between 1 - v and 1 + v
  float hue = 0;                                       // part of the circle either way, at most 0.5
  float erase = 0;              // probability that a rectangle of 2 to 33 % of the area becomes the mean (0 in the network's input)
  float mixup = 0, cutmix = 0;  // alpha of Beta(alpha, alpha), the share of the sample itself; with both, each has half of the samples

  bool colours() const { return brightness != 0 || contrast != 0 || saturation != 0 || hue != 0; }
  bool samples() const { return resized_crop[1] != 0 || crop != 0 || flip != 0 || vertical_flip != 0 || rotate != 0 || colours() || erase != 0; }
  bool batches() const { return mixup != 0 || cutmix != 0; }
};

// The words of --augment, separated by commas, each with a value of its own where "=" follows: flip[=0.5] vflip[=0.5] crop[=PIXELS] (an eighth)
// resized-crop[=0.08:1] rotate[=10] color[=0.4] (brightness, contrast and saturation) brightness=, contrast=, saturation=[0.4] hue[=0.1]
// erase[=0.25] mixup[=0.2] cutmix[=1]. UsageError naming the word.
Augmentation parse_augmentation(const std::string& words);

// Whose draws these are.
struct AugmentKey {
  std::uint64_t seed = 0;
  std::int64_t pass = 0, index = 0;  // below 2^32
};

// The part of a height x width image that is resized to the network's size; torchvision's RandomResizedCrop: ten tries, then the middle.
Window draw_resized_crop(const Augmentation&, const AugmentKey&, int height, int width);
// Everything between the resized crop and the network's input. `border` fills what the crop moves into, `mean` (one for each channel) what
// rotation and erasing leave.
void augment(Canvas&, const Augmentation&, const AugmentKey&, float border, std::span<const float> mean);

// How a sample is mixed with another of its batch.
struct Mix {
  std::int64_t partner = 0;   // place in the batch
  float own = 1;              // share of the sample itself in the target
  std::optional<Window> box;  // cutmix: this rectangle comes from the partner; without it all values are mixed
};
// For the sample at `place` of a batch of `count`. Nothing is mixed in a batch of one.
Mix draw_mix(const Augmentation&, const AugmentKey&, std::int64_t place, std::int64_t count, int height, int width);

}  // namespace tandem::io
