#include "tests/support/hostile.h"

namespace tandem::test {
namespace {

std::string little(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

std::string big(std::uint32_t value) {
  std::string out;
  for (int i = 3; i >= 0; --i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

std::uint32_t crc32(const std::string& bytes) {
  std::uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

// A stored block that is not the last.
std::string stored(const std::string& bytes) {
  if (bytes.empty()) return {};
  return std::string(1, '\0') + little(bytes.size(), 2) + little(~bytes.size() & 0xffff, 2) + bytes;
}

}  // namespace

std::string deflated_zeros(std::uint64_t count) {
  std::string out;
  unsigned held = 0;
  int bits = 0;
  const auto put = [&](unsigned value, int n) {
    held |= value << bits;
    for (bits += n; bits >= 8; bits -= 8, held >>= 8) out += static_cast<char>(held & 0xff);
  };
  put(0b011, 3);                                                                // last block, fixed codes
  put(0b00001100, 8);                                                           // literal 0: code 00110000, most significant bit first
  for (std::uint64_t at = 0; at < count; at += 258) put(0b00000'10100011, 13);  // length 258: 11000101; distance 1: 00000
  put(0, 7 + 7);                                                                // end of block, and what fills the byte
  return out;
}

std::string gzip_bomb(const std::string& head, std::uint64_t zeros) {
  return std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10) + stored(head) + deflated_zeros(zeros) + std::string(8, '\0');
}

std::string png_chunk(const std::string& type, const std::string& content) {
  return big(static_cast<std::uint32_t>(content.size())) + type + content + big(crc32(type + content));
}

std::string png_start(std::uint32_t width, std::uint32_t height) {
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", big(width) + big(height) + std::string("\x08\x02\0\0\0", 5));
}

std::string zlib_zeros(std::uint64_t count) { return "\x78\x01" + deflated_zeros(count) + std::string(4, '\0'); }

std::string zip_bomb(const std::string& name, const std::string& head, std::uint64_t zeros, std::uint32_t size) {
  const std::string data = stored(head) + deflated_zeros(zeros);
  const std::string sizes = little(0, 4) + little(data.size(), 4) + little(size, 4);
  const std::string common = little(20, 2) + little(0, 2) + little(8, 2) + little(0, 4) + sizes + little(name.size(), 2) + little(0, 2);
  const std::string local = "PK\x03\x04" + common + name + data;
  const std::string central = "PK\x01\x02" + little(20, 2) + common + little(0, 2) + little(0, 2) + little(0, 2) + little(0, 4) + little(0, 4) + name;
  return local + central + "PK\x05\x06" + little(0, 4) + little(1, 2) + little(1, 2) + little(central.size(), 4) + little(local.size(), 4) +
         little(0, 2);
}

}  // namespace tandem::test
