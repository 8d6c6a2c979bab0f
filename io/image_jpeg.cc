// JPEG by libjpeg-turbo's libjpeg API. Errors leave C code by longjmp, so functions below that run under setjmp own nothing that needs
// a destructor; the owner is decode_jpeg.
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include <jpeglib.h>
// jpeglib.h must come first.
#include <jerror.h>

#include <string>
#include <string_view>

#include "io/image_codecs.h"
#include "runtime/base/error.h"

namespace tandem::io {
namespace {

struct Decoder {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf escape{};
  char message[JMSG_LENGTH_MAX] = {};
  const DecodeLimits* limits = nullptr;
  ~Decoder() { jpeg_destroy_decompress(&info); }
};

Decoder& decoder_of(j_common_ptr info) { return *static_cast<Decoder*>(info->client_data); }

[[noreturn]] void leave(j_common_ptr info) {
  Decoder& decoder = decoder_of(info);
  decoder.errors.format_message(info, decoder.message);
  std::longjmp(decoder.escape, 1);
}

[[noreturn]] void leave_with(j_common_ptr info, const char* message) {
  Decoder& decoder = decoder_of(info);
  std::snprintf(decoder.message, sizeof decoder.message, "%s", message);
  std::longjmp(decoder.escape, 1);
}

// libjpeg reports lost data as a warning and goes on with gray rows: that is damage here. Warnings about the header's wording are not.
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  if (code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM || code == JWRN_BOGUS_ICC) return;
  leave(info);
}

// Called while a file of several scans is read in.
void on_progress(j_common_ptr info) {
  const DecodeLimits& limits = *decoder_of(info).limits;
  const auto* reader = reinterpret_cast<const jpeg_decompress_struct*>(info);
  const std::int64_t scans = reader->input_scan_number;
  if (scans > limits.max_scans) leave_with(info, "more JPEG scans than the limit");
  if (scans > 1 && scans * reader->image_width * reader->image_height > limits.max_scan_pixels)
    leave_with(info, "more JPEG scans than the limit for an image of this size");
}

void set_up(Decoder& decoder, std::span<const std::uint8_t> bytes, const DecodeOptions& options) {
  decoder.info.err = jpeg_std_error(&decoder.errors);
  decoder.errors.error_exit = leave;
  decoder.errors.emit_message = on_message;
  decoder.info.client_data = &decoder;
  decoder.limits = &options.limits;
  if (setjmp(decoder.escape) != 0) return;
  jpeg_create_decompress(&decoder.info);
  decoder.info.client_data = &decoder;
  decoder.progress.progress_monitor = on_progress;
  decoder.info.progress = &decoder.progress;
  jpeg_mem_src(&decoder.info, bytes.data(), bytes.size());
  if (options.exif_orientation) jpeg_save_markers(&decoder.info, JPEG_APP0 + 1, 0xffff);
  jpeg_read_header(&decoder.info, TRUE);
}

// Bytes per pixel held while decoding: RGB, and for several scans the coefficients of all components.
double bytes_per_pixel(const jpeg_decompress_struct& info) {
  double coefficients = 0;
  if (info.progressive_mode || info.comps_in_scan < info.num_components)
    for (int i = 0; i < info.num_components; ++i)
      coefficients += 2.0 * info.comp_info[i].h_samp_factor * info.comp_info[i].v_samp_factor / (info.max_h_samp_factor * info.max_v_samp_factor);
  return 3 + coefficients;
}

// Adobe's polarity (255 is no ink), as Pillow for every four-channel JPEG: c and k are stored inverted, so the product is the light left.
void cmyk_row_to_rgb(const JSAMPLE* cmyk, std::uint8_t* rgb, int width) {
  for (int x = 0; x < width; ++x, cmyk += 4, rgb += 3) {
    const int light = cmyk[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - cmyk[c]) * light + 128;
      const int value = light - (((product >> 8) + product) >> 8);
      rgb[c] = static_cast<std::uint8_t>(value < 0 ? 0 : value);
    }
  }
}

void read_pixels(Decoder& decoder, std::uint8_t* rgb) {
  if (setjmp(decoder.escape) != 0) return;
  jpeg_decompress_struct& info = decoder.info;
  const bool four = info.num_components == 4;
  info.out_color_space = four ? JCS_CMYK : JCS_RGB;
  info.dct_method = JDCT_ISLOW;
  info.do_fancy_upsampling = TRUE;
  jpeg_start_decompress(&info);
  const std::size_t stride = std::size_t{3} * info.output_width;
  JSAMPARRAY row = nullptr;
  if (four) row = info.mem->alloc_sarray(reinterpret_cast<j_common_ptr>(&info), JPOOL_IMAGE, info.output_width * 4, 1);
  while (info.output_scanline < info.output_height) {
    std::uint8_t* to = rgb + stride * info.output_scanline;
    if (four) {
      jpeg_read_scanlines(&info, row, 1);
      cmyk_row_to_rgb(row[0], to, static_cast<int>(info.output_width));
    } else {
      JSAMPROW direct = to;
      jpeg_read_scanlines(&info, &direct, 1);
    }
  }
  jpeg_finish_decompress(&info);  // reads on to the end marker: its absence is a warning, thus damage
}

int orientation_of(const jpeg_decompress_struct& info) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  for (const jpeg_marker_struct* m = info.marker_list; m != nullptr; m = m->next)
    if (m->data_length > kExif.size() && std::memcmp(m->data, kExif.data(), kExif.size()) == 0)
      return exif_orientation({m->data + kExif.size(), m->data_length - kExif.size()});
  return 1;
}

void throw_if_failed(const Decoder& decoder) {
  if (decoder.message[0] != 0) throw InvalidData("damaged or unsupported JPEG: " + std::string(decoder.message));
}

}  // namespace

Decoded decode_jpeg(std::span<const std::uint8_t> bytes, const DecodeOptions& options) {
  Decoder decoder;
  set_up(decoder, bytes, options);
  throw_if_failed(decoder);
  const jpeg_decompress_struct& info = decoder.info;
  check_image_size(info.image_width, info.image_height, bytes_per_pixel(info), options.limits);
  if (info.num_components != 1 && info.num_components != 3 && info.num_components != 4)
    throw Unsupported("JPEG with " + std::to_string(info.num_components) + " components, expected 1, 3 or 4");
  Decoded decoded{make_image(info.image_width, info.image_height), orientation_of(info)};
  read_pixels(decoder, decoded.image.rgb.data());
  throw_if_failed(decoder);
  return decoded;
}

}  // namespace tandem::io
