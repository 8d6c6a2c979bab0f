#include <array>
#include <cstring>
#include <utility>

#include "io/image.h"
#include "io/image_codecs.h"

namespace tandem::io {
namespace {

// Unsigned numbers of a TIFF block in its own byte order; 0 beyond the end.
struct TiffReader {
  std::span<const std::uint8_t> bytes;
  bool big_endian;

  std::uint32_t number(std::size_t at, int size) const {
    if (at > bytes.size() || bytes.size() - at < static_cast<std::size_t>(size)) return 0;
    std::uint32_t value = 0;
    for (int i = 0; i < size; ++i) value = value << 8 | bytes[at + static_cast<std::size_t>(big_endian ? i : size - 1 - i)];
    return value;
  }
};

}  // namespace

int exif_orientation(std::span<const std::uint8_t> tiff) {
  constexpr std::uint32_t kOrientation = 0x0112, kShort = 3;
  if (tiff.size() < 14) return 1;
  const bool big = tiff[0] == 'M' && tiff[1] == 'M';
  if (!big && !(tiff[0] == 'I' && tiff[1] == 'I')) return 1;
  const TiffReader reader{tiff, big};
  if (reader.number(2, 2) != 42) return 1;
  const std::size_t directory = reader.number(4, 4);
  const std::uint32_t entries = reader.number(directory, 2);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + std::size_t{12} * i;
    if (entry > tiff.size() || tiff.size() - entry < 12) break;
    if (reader.number(entry, 2) != kOrientation || reader.number(entry + 2, 2) != kShort) continue;
    const std::uint32_t value = reader.number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Image apply_orientation(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  const bool swaps = orientation >= 5;
  const std::int64_t w = image.width, h = image.height;
  Image out = make_image(swaps ? h : w, swaps ? w : h);
  std::uint8_t* to = out.rgb.data();
  // Source coordinates as seen from the output: mirrored along x, mirrored along y, axes exchanged.
  const bool flip_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool flip_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  for (std::int64_t y = 0; y < out.height; ++y)
    for (std::int64_t x = 0; x < out.width; ++x, to += 3) {
      std::int64_t sx = swaps ? y : x, sy = swaps ? x : y;
      if (flip_x) sx = w - 1 - sx;
      if (flip_y) sy = h - 1 - sy;
      std::memcpy(to, image.rgb.data() + (sy * w + sx) * 3, 3);
    }
  return out;
}

}  // namespace tandem::io
