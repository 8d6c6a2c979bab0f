// Small files that unpack to much, built by hand so that no compressor is needed.
#pragma once

#include <cstdint>
#include <string>

namespace tandem::test {

// A raw deflate stream of `count` zero bytes (rounded up to a multiple of 258, plus one): 13 bits for 258 of them.
std::string deflated_zeros(std::uint64_t count);
// .gz: `head` stored, then zeros. The checksum behind it is wrong: whoever gets that far notices.
std::string gzip_bomb(const std::string& head, std::uint64_t zeros);

// A PNG chunk with its checksum; the signature and header of an RGB image.
std::string png_chunk(const std::string& type, const std::string& content);
std::string png_start(std::uint32_t width, std::uint32_t height);
// A zlib stream of zeros, its checksum wrong.
std::string zlib_zeros(std::uint64_t count);

// A zip archive with one deflated entry, whose header claims `size` bytes.
std::string zip_bomb(const std::string& name, const std::string& head, std::uint64_t zeros, std::uint32_t size);

}  // namespace tandem::test
