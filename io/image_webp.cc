#include <webp/decode.h>

#include <cstring>

#include "io/image_codecs.h"
#include "runtime/base/error.h"

namespace tandem::io {
namespace {

std::uint32_t little32(const std::uint8_t* at) { return at[0] | at[1] << 8 | at[2] << 16 | static_cast<std::uint32_t>(at[3]) << 24; }

int orientation_of(std::span<const std::uint8_t> bytes) {
  std::size_t at = 12;
  while (at <= bytes.size() && bytes.size() - at >= 8) {
    const std::size_t length = little32(&bytes[at + 4]);
    if (length > bytes.size() - at - 8) break;
    if (std::memcmp(&bytes[at], "EXIF", 4) == 0) {
      std::span<const std::uint8_t> block = bytes.subspan(at + 8, length);
      if (length > 6 && std::memcmp(block.data(), "Exif\0\0", 6) == 0) block = block.subspan(6);
      return exif_orientation(block);
    }
    at += 8 + length + (length & 1);
  }
  return 1;
}

}  // namespace

Decoded decode_webp(std::span<const std::uint8_t> bytes, const DecodeOptions& options) {
  constexpr int kLossless = 2;
  WebPBitstreamFeatures features{};
  if (WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK) throw InvalidData("damaged WebP: its header cannot be read");
  if (std::uint64_t{little32(&bytes[4])} + 8 > bytes.size()) throw InvalidData("truncated WebP: shorter than its header says");
  if (features.has_animation) throw Unsupported("this is an animated WebP; tandem reads still images, so extract the frame you mean first");
  // The lossless decoder holds the whole picture as 32-bit ARGB beside the result; alpha planes of lossy files add one byte.
  check_image_size(features.width, features.height, features.format == kLossless ? 7 : 4, options.limits);
  Decoded decoded{make_image(features.width, features.height), 1};
  std::vector<std::uint8_t>& rgb = decoded.image.rgb;
  if (WebPDecodeRGBInto(bytes.data(), bytes.size(), rgb.data(), rgb.size(), 3 * features.width) == nullptr)
    throw InvalidData("damaged WebP: its pixels cannot be decoded");
  if (options.exif_orientation) decoded.orientation = orientation_of(bytes);
  return decoded;
}

}  // namespace tandem::io
