#include "io/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "io/image_codecs.h"
#include "io/read_file.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {
namespace {

std::string_view head_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 16)};
}

// What a file that is not decoded probably is, for the message.
std::string_view name_of_unsupported(std::string_view head) {
  using namespace std::string_view_literals;
  if (head.starts_with("GIF8")) return "a GIF image";
  if (head.starts_with("II*\0"sv) || head.starts_with("MM\0*"sv)) return "a TIFF image";
  if (head.substr(std::min<std::size_t>(4, head.size())).starts_with("ftyp")) return "an AVIF, HEIC or MP4 file";
  if (head.starts_with("\xff\x0a"sv) || head.starts_with("\0\0\0\x0cJXL"sv)) return "a JPEG XL image";
  if (head.starts_with("\0\0\0\x0cjP"sv)) return "a JPEG 2000 image";
  if (head.starts_with("%PDF")) return "a PDF file";
  if (head.starts_with("P6") || head.starts_with("P5")) return "a PNM image";
  return {};
}

}  // namespace

ImageFormat sniff_image(std::span<const std::uint8_t> bytes) {
  const std::string_view head = head_of(bytes);
  if (head.starts_with("\xff\xd8\xff")) return ImageFormat::kJpeg;
  if (head.starts_with("\x89PNG\r\n\x1a\n")) return ImageFormat::kPng;
  if (head.starts_with("BM")) return ImageFormat::kBmp;
  if (head.starts_with("RIFF") && head.size() >= 12 && head.substr(8, 4) == "WEBP") return ImageFormat::kWebp;
  return ImageFormat::kUnknown;
}

Image decode_image(std::span<const std::uint8_t> bytes, const DecodeOptions& options) {
  Decoded decoded;
  switch (sniff_image(bytes)) {
    case ImageFormat::kJpeg:
      decoded = decode_jpeg(bytes, options);
      break;
    case ImageFormat::kPng:
      decoded = decode_png(bytes, options);
      break;
    case ImageFormat::kBmp:
      decoded = decode_bmp(bytes, options);
      break;
    case ImageFormat::kWebp:
      decoded = decode_webp(bytes, options);
      break;
    case ImageFormat::kUnknown: {
      if (bytes.empty()) throw InvalidData("the file is empty, expected an image");
      const std::string_view name = name_of_unsupported(head_of(bytes));
      if (!name.empty()) throw Unsupported(fmt::format("this is {}; tandem reads JPEG, PNG, BMP and WebP, so convert it first", name));
      throw InvalidData("not an image: the first bytes are of no JPEG, PNG, BMP or WebP file");
    }
  }
  return apply_orientation(std::move(decoded.image), decoded.orientation);
}

Image load_image(const std::string& path, const DecodeOptions& options) {
  const std::vector<std::uint8_t> bytes = read_file(path, options.limits.max_file_bytes);
  return with_context([&] { return quote_whole(path); }, [&] { return decode_image(bytes, options); });
}

void check_image_size(std::int64_t width, std::int64_t height, double bytes_per_pixel, const DecodeLimits& limits) {
  if (width <= 0 || height <= 0) throw InvalidData(fmt::format("the image is {}x{}, expected at least 1x1", width, height));
  if (width > limits.max_pixels / height)
    throw InvalidData(fmt::format("the image is {}x{}, more than the limit of {} pixels", width, height, limits.max_pixels));
  const double bytes = static_cast<double>(width * height) * bytes_per_pixel;
  if (bytes > static_cast<double>(limits.max_bytes))
    throw InvalidData(fmt::format("decoding this {}x{} image takes {:.0f} MiB, more than the limit of {} MiB", width, height, bytes / 1048576,
                                  limits.max_bytes / 1048576));
}

Image make_image(std::int64_t width, std::int64_t height) {
  return {static_cast<int>(width), static_cast<int>(height), std::vector<std::uint8_t>(static_cast<std::size_t>(width * height * 3))};
}

}  // namespace tandem::io
