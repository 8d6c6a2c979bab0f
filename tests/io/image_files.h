// Image fixtures for the tests of io/.
#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace tandem::test {

inline std::string image_path(const std::string& name) { return std::string(TANDEM_SOURCE_DIR "/tests/data/images/") + name; }

inline std::vector<std::uint8_t> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<std::uint8_t> image_bytes(const std::string& name) { return bytes_of(image_path(name)); }

}  // namespace tandem::test
