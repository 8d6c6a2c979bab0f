// Windows bitmaps: 1, 4, 8 (palette), 16, 24 and 32 bits, uncompressed or with the usual bit fields, bottom-up and top-down.
#include <fmt/format.h>

#include <array>
#include <bit>

#include "io/image_codecs.h"
#include "runtime/base/error.h"

namespace tandem::io {
namespace {

using Bytes = std::span<const std::uint8_t>;

std::uint32_t little(Bytes bytes, std::size_t at, int size) {
  std::uint32_t value = 0;
  for (int i = size - 1; i >= 0; --i) value = value << 8 | bytes[at + static_cast<std::size_t>(i)];
  return value;
}

struct Header {
  std::size_t info_bytes = 0;  // of the second header
  std::size_t pixels_at = 0;   // offset of the first stored row
  std::int64_t width = 0, height = 0;
  bool top_down = false;
  int bits = 0;
  std::size_t colours = 0;               // palette entries
  int colour_bytes = 4;                  // of one palette entry
  std::array<std::uint32_t, 3> masks{};  // red, green, blue of 16 and 32 bits
};

constexpr std::size_t kFileHeader = 14, kCoreHeader = 12, kInfoHeader = 40;

void read_masks(Bytes bytes, std::uint32_t compression, Header& h) {
  constexpr std::uint32_t kPlain = 0, kBitFields = 3, kAlphaBitFields = 6;
  if (compression != kPlain && compression != kBitFields && compression != kAlphaBitFields)
    throw Unsupported(fmt::format("BMP with compression {}; tandem reads uncompressed ones, so convert it first", compression));
  if (h.bits == 16) h.masks = {0x7c00, 0x3e0, 0x1f};
  if (h.bits == 32) h.masks = {0xff0000, 0xff00, 0xff};
  if (compression == kPlain) return;
  if (h.bits != 16 && h.bits != 32) throw InvalidData(fmt::format("BMP of {} bits with bit fields, expected 16 or 32 bits", h.bits));
  constexpr std::size_t kMasksAt = kFileHeader + kInfoHeader;
  if (bytes.size() < kMasksAt + 12) throw InvalidData("truncated BMP: its bit fields are missing");
  std::array<std::uint32_t, 3> masks{};
  for (std::size_t i = 0; i < 3; ++i) masks[i] = little(bytes, kMasksAt + 4 * i, 4);
  using Masks = std::array<std::uint32_t, 3>;
  if (h.bits == 32 && masks == Masks{0, 0, 0}) masks = h.masks;
  const bool known = h.bits == 16 ? masks == Masks{0x7c00, 0x3e0, 0x1f} || masks == Masks{0xf800, 0x7e0, 0x1f}
                                  : masks == Masks{0xff0000, 0xff00, 0xff} || masks == Masks{0xff, 0xff00, 0xff0000} ||
                                        masks == Masks{0xff000000, 0xff0000, 0xff00} || masks == Masks{0xff000000, 0xff00, 0xff};
  if (!known)
    throw Unsupported(fmt::format("BMP of {} bits with colour masks {:x}, {:x}, {:x}; convert it first", h.bits, masks[0], masks[1], masks[2]));
  h.masks = masks;
}

Header read_header(Bytes bytes) {
  Header h;
  if (bytes.size() < kFileHeader + kCoreHeader) throw InvalidData("truncated BMP: its header is incomplete");
  h.pixels_at = little(bytes, 10, 4);
  h.info_bytes = little(bytes, kFileHeader, 4);
  if (h.info_bytes == kCoreHeader) {
    h.width = little(bytes, 18, 2);
    h.height = little(bytes, 20, 2);
    h.bits = static_cast<int>(little(bytes, 24, 2));
    h.colour_bytes = 3;
    if (h.bits <= 8) h.colours = std::size_t{1} << h.bits;
  } else if (h.info_bytes >= kInfoHeader && h.info_bytes <= 124) {
    if (bytes.size() < kFileHeader + h.info_bytes) throw InvalidData("truncated BMP: its header is incomplete");
    h.width = static_cast<std::int32_t>(little(bytes, 18, 4));
    h.height = static_cast<std::int32_t>(little(bytes, 22, 4));
    h.top_down = h.height < 0;
    if (h.top_down) h.height = -h.height;
    h.bits = static_cast<int>(little(bytes, 28, 2));
    h.colours = little(bytes, 46, 4);
    if (h.bits <= 8 && h.colours == 0) h.colours = std::size_t{1} << h.bits;
    read_masks(bytes, little(bytes, 30, 4), h);
  } else {
    throw InvalidData(fmt::format("BMP with a header of {} bytes, expected 12 or 40 to 124", h.info_bytes));
  }
  if (h.bits != 1 && h.bits != 4 && h.bits != 8 && h.bits != 16 && h.bits != 24 && h.bits != 32)
    throw Unsupported(fmt::format("BMP with {} bits per pixel, expected 1, 4, 8, 16, 24 or 32", h.bits));
  return h;
}

// The palette as RGB, 256 entries; indices beyond the stored ones are black.
std::array<std::uint8_t, 768> read_palette(Bytes bytes, const Header& h) {
  std::array<std::uint8_t, 768> palette{};
  if (h.bits > 8) return palette;
  if (h.colours > 256) throw InvalidData(fmt::format("BMP with a palette of {} colours, expected at most 256", h.colours));
  const std::size_t at = kFileHeader + h.info_bytes, entry = static_cast<std::size_t>(h.colour_bytes);
  if (bytes.size() < at + entry * h.colours) throw InvalidData("truncated BMP: its palette is incomplete");
  for (std::size_t i = 0; i < h.colours; ++i)
    for (std::size_t c = 0; c < 3; ++c) palette[3 * i + c] = bytes[at + entry * i + 2 - c];
  return palette;
}

// One channel of a pixel word, scaled to 0..255 (five and six bits: v * 255 / 31 and v * 255 / 63, cut, as Pillow).
std::uint8_t channel(std::uint32_t word, std::uint32_t mask) {
  const int shift = std::countr_zero(mask);
  return static_cast<std::uint8_t>(((word & mask) >> shift) * 255 / (mask >> shift));
}

void read_row(const Header& h, const std::array<std::uint8_t, 768>& palette, Bytes row, std::uint8_t* rgb) {
  for (std::size_t x = 0; x < static_cast<std::size_t>(h.width); ++x, rgb += 3) {
    if (h.bits <= 8) {
      const auto bits = static_cast<std::size_t>(h.bits);
      const std::size_t index = row[x * bits / 8] >> (8 - bits - x * bits % 8) & ((1u << bits) - 1);
      for (std::size_t c = 0; c < 3; ++c) rgb[c] = palette[3 * index + c];
    } else if (h.bits == 24) {
      for (std::size_t c = 0; c < 3; ++c) rgb[c] = row[3 * x + 2 - c];
    } else {
      const std::uint32_t word = little(row, x * static_cast<std::size_t>(h.bits / 8), h.bits / 8);
      for (std::size_t c = 0; c < 3; ++c) rgb[c] = channel(word, h.masks[c]);
    }
  }
}

}  // namespace

Decoded decode_bmp(std::span<const std::uint8_t> bytes, const DecodeOptions& options) {
  const Header h = read_header(bytes);
  check_image_size(h.width, h.height, 3, options.limits);
  const auto palette = read_palette(bytes, h);
  const std::uint64_t stride = (static_cast<std::uint64_t>(h.width) * static_cast<std::uint64_t>(h.bits) + 31) / 32 * 4;
  const std::uint64_t needed = stride * static_cast<std::uint64_t>(h.height);
  if (h.pixels_at < kFileHeader + h.info_bytes || h.pixels_at > bytes.size() || bytes.size() - h.pixels_at < needed)
    throw InvalidData(
        fmt::format("truncated BMP: {} bytes of pixels at offset {} expected, the file has {} bytes", needed, h.pixels_at, bytes.size()));
  Decoded decoded{make_image(h.width, h.height), 1};
  for (std::int64_t y = 0; y < h.height; ++y) {
    const auto stored = static_cast<std::uint64_t>(h.top_down ? y : h.height - 1 - y);
    read_row(h, palette, bytes.subspan(h.pixels_at + stored * stride, stride), decoded.image.rgb.data() + y * h.width * 3);
  }
  return decoded;
}

}  // namespace tandem::io
