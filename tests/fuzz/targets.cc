#include "tests/fuzz/targets.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "io/image.h"
#include "runtime/base/error.h"
#include "tests/fuzz/network_target.h"

namespace tandem::fuzz {
namespace {

bool accepts_image(const Bytes& bytes) {
  try {
    io::DecodeOptions options;
    options.exif_orientation = true;
    return io::decode_image(bytes, options).width > 0;
  } catch (const Error&) {
    return false;
  }
}

bool ends_with_any(const std::string& name, const std::vector<std::string>& endings) {
  return std::any_of(endings.begin(), endings.end(), [&](const std::string& e) { return name.ends_with(e); });
}

}  // namespace

const std::vector<Target>& targets() {
  static const std::vector<Target> list = {
      {"onnx", {".onnx"}, accepts_network}, {"jpeg", {".jpg", ".jpeg"}, accepts_image}, {"png", {".png"}, accepts_image},
      {"bmp", {".bmp"}, accepts_image},     {"webp", {".webp"}, accepts_image},
  };
  return list;
}

std::vector<Bytes> seeds_of(const Target& target, const std::string& data_folder) {
  constexpr std::uintmax_t kLargest = 64 * 1024;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data_folder)) {
    if (entry.is_regular_file() && entry.file_size() <= kLargest && ends_with_any(entry.path().filename(), target.seed_extensions)) {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> seeds;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return seeds;
}

}  // namespace tandem::fuzz
