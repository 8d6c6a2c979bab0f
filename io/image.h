// Images: bytes of a JPEG, PNG, BMP or WebP file to 8-bit RGB. The content decides the format, never the name.
//
// The pixels are those of Pillow's Image.open(f).convert("RGB"): JPEG with the slow integer DCT and smooth chroma upsampling; alpha
// dropped, not blended; palettes looked up; 16-bit colour cut to its high byte; 16-bit gray without alpha clipped at 255 (Pillow's rule,
// which makes most such images white: scale them before); CMYK and YCCK JPEG read with Adobe's polarity, marker or not.
// Metadata (gamma, ICC profile) is ignored. Decoding is a pure function, safe from any thread, and keeps no state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tandem::io {

struct Image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  // height x width x 3, row-major
};

// Checked against the file's header before memory is taken.
struct DecodeLimits {
  std::int64_t max_pixels = 100'000'000;       // width * height
  std::int64_t max_bytes = 400 * 1024 * 1024;  // pixels plus the decoder's own image buffers
  std::int64_t max_file_bytes = 256 * 1024 * 1024;
  int max_scans = 500;                           // of a progressive JPEG
  std::int64_t max_scan_pixels = 4'000'000'000;  // scans * pixels: bounds the time of a progressive JPEG
};

struct DecodeOptions {
  bool exif_orientation = false;  // turn and mirror the image as its EXIF tag says (OpenCV does, Pillow and Keras do not)
  DecodeLimits limits;
};

enum class ImageFormat { kUnknown, kJpeg, kPng, kBmp, kWebp };
// By the first bytes. kUnknown for everything tandem does not decode.
ImageFormat sniff_image(std::span<const std::uint8_t> bytes);

// Throws InvalidData for damaged, truncated (any missing byte of the image stream) or oversized images, saying what is wrong, and Unsupported
// for formats and variants that are not decoded (GIF, TIFF, animations, ...). The caller adds the path.
Image decode_image(std::span<const std::uint8_t> bytes, const DecodeOptions& options = {});

// decode_image of a file; errors carry the path.
Image load_image(const std::string& path, const DecodeOptions& options = {});

// The orientation tag (1..8) of an EXIF block ("II*\0..." or "MM\0*..."); 1 when there is none or the block is damaged.
int exif_orientation(std::span<const std::uint8_t> tiff);
// The image turned upright for orientation 1..8.
Image apply_orientation(Image image, int orientation);

}  // namespace tandem::io
