#include <spng.h>

#include <memory>
#include <string>

#include "io/image_codecs.h"
#include "runtime/base/error.h"

namespace tandem::io {
namespace {

constexpr std::size_t kMaxChunkBytes = 16u << 20;

void check(int error) {
  if (error != 0) throw InvalidData(std::string("damaged PNG: ") + spng_strerror(error));
}

// Pillow's conversion of 16-bit gray: values above 255 are clipped. The samples lie in the last two thirds of `rgb`, where the pixels of the
// front never overtake them.
void spread_gray16(std::uint8_t* rgb, std::size_t pixels) {
  const std::uint8_t* samples = rgb + pixels;
  for (std::size_t i = 0; i < pixels; ++i) {
    const std::uint8_t value = samples[2 * i] != 0 ? 255 : samples[2 * i + 1];
    rgb[3 * i] = rgb[3 * i + 1] = rgb[3 * i + 2] = value;
  }
}

int orientation_of(spng_ctx* png) {
  spng_exif exif{};
  if (spng_get_exif(png, &exif) != 0 || exif.data == nullptr) return 1;
  return exif_orientation({reinterpret_cast<const std::uint8_t*>(exif.data), exif.length});
}

// spng stops at the length of the end chunk; a file cut within that chunk is cut all the same.
bool has_whole_end(std::span<const std::uint8_t> bytes) {
  std::size_t at = 8;
  while (bytes.size() - at >= 12) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | bytes[at + i];
    if (bytes[at + 4] == 'I' && bytes[at + 5] == 'E' && bytes[at + 6] == 'N' && bytes[at + 7] == 'D') return true;
    if (length > bytes.size() - at - 12) return false;
    at += length + 12;
  }
  return false;
}

}  // namespace

Decoded decode_png(std::span<const std::uint8_t> bytes, const DecodeOptions& options) {
  const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> png(spng_ctx_new(0), spng_ctx_free);
  if (!png) throw OutOfMemory("no memory for a PNG decoder");
  // A checksum that fails in a chunk without pixels does not spoil the picture: that chunk is dropped.
  check(spng_set_crc_action(png.get(), SPNG_CRC_ERROR, SPNG_CRC_DISCARD));
  check(spng_set_chunk_limits(png.get(), kMaxChunkBytes, kMaxChunkBytes));
  check(spng_set_png_buffer(png.get(), bytes.data(), bytes.size()));
  spng_ihdr header{};
  check(spng_get_ihdr(png.get(), &header));
  check_image_size(header.width, header.height, 3, options.limits);

  Decoded decoded{make_image(header.width, header.height), 1};
  std::vector<std::uint8_t>& rgb = decoded.image.rgb;
  if (header.color_type == SPNG_COLOR_TYPE_GRAYSCALE && header.bit_depth == 16) {
    const std::size_t pixels = rgb.size() / 3;
    check(spng_decode_image(png.get(), rgb.data() + pixels, 2 * pixels, SPNG_FMT_RAW, 0));
    spread_gray16(rgb.data(), pixels);
  } else {
    check(spng_decode_image(png.get(), rgb.data(), rgb.size(), SPNG_FMT_RGB8, 0));
  }
  check(spng_decode_chunks(png.get()));
  if (!has_whole_end(bytes)) throw InvalidData("truncated PNG: its end chunk is missing");
  if (options.exif_orientation) decoded.orientation = orientation_of(png.get());
  return decoded;
}

}  // namespace tandem::io
