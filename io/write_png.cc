#include "io/write_png.h"

#include <fmt/format.h>
#include <spng.h>

#include <cstdlib>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/quote.h"
#include "runtime/base/safe_file.h"

namespace tandem::io {

std::vector<std::byte> encode_png(const Pixels& pixels) {
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context(spng_ctx_new(SPNG_CTX_ENCODER), spng_ctx_free);
  const auto check = [&](int code) {
    if (code != 0)
      throw InvalidData(fmt::format("an image of {} x {} cannot be written as PNG: {}", pixels.width, pixels.height, spng_strerror(code)));
  };
  if (!context) throw OutOfMemory("no memory for the PNG encoder");
  check(spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1));
  spng_ihdr header{};
  header.width = static_cast<std::uint32_t>(pixels.width);
  header.height = static_cast<std::uint32_t>(pixels.height);
  header.bit_depth = 8;
  header.color_type = static_cast<std::uint8_t>(pixels.channels == 1 ? SPNG_COLOR_TYPE_GRAYSCALE : SPNG_COLOR_TYPE_TRUECOLOR);
  check(spng_set_ihdr(context.get(), &header));
  check(spng_encode_image(context.get(), pixels.data.data(), pixels.data.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE));
  std::size_t size = 0;
  int code = 0;
  const std::unique_ptr<void, void (*)(void*)> bytes(spng_get_png_buffer(context.get(), &size, &code), std::free);
  check(code);
  const auto* begin = static_cast<const std::byte*>(bytes.get());
  return {begin, begin + size};
}

void write_png(const std::string& file, const Pixels& pixels) {
  save_file(file, with_context([&] { return quote_whole(file); }, [&] { return encode_png(pixels); }));
}

}  // namespace tandem::io
