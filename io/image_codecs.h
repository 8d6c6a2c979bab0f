// The decoders behind decode_image, one file each. Internal to io/.
#pragma once

#include <cstdint>
#include <span>

#include "io/image.h"

namespace tandem::io {

// An image and the orientation that its EXIF block asks for (1 when not asked for or absent).
struct Decoded {
  Image image;
  int orientation = 1;
};

Decoded decode_jpeg(std::span<const std::uint8_t>, const DecodeOptions&);
Decoded decode_png(std::span<const std::uint8_t>, const DecodeOptions&);
Decoded decode_bmp(std::span<const std::uint8_t>, const DecodeOptions&);
Decoded decode_webp(std::span<const std::uint8_t>, const DecodeOptions&);

// Throws InvalidData unless 0 < width, height; width * height <= max_pixels; and width * height * bytes_per_pixel <= max_bytes.
void check_image_size(std::int64_t width, std::int64_t height, double bytes_per_pixel, const DecodeLimits&);
// An image of that size, pixels zero.
Image make_image(std::int64_t width, std::int64_t height);

}  // namespace tandem::io
