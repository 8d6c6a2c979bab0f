#include "tests/fuzz/targets.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "io/idx.h"
#include "io/image.h"
#include "io/npy.h"
#include "io/npz.h"
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

bool accepts_npy(const Bytes& bytes) {
  try {
    io::parse_npy(std::as_bytes(std::span(bytes)));
    return true;
  } catch (const Error&) {
    return false;
  }
}

// The bytes as a file that exists in memory only.
class MemoryFile {
 public:
  explicit MemoryFile(const Bytes& bytes) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (fd_ < 0 || write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) throw std::runtime_error("memfd_create failed");
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

bool accepts_npz(const Bytes& bytes) {
  const MemoryFile file(bytes);
  try {
    const io::NpzFile npz(file.path());
    for (const char* name : {"x_test", "y_test", "cube_f", "f2_be_f"}) {
      if (npz.has(name)) npz.read(name);
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool accepts_idx(const Bytes& bytes) {
  const MemoryFile file(bytes);
  try {
    io::read_idx(file.path());
    return true;
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
      {"onnx", {".onnx"}, accepts_network}, {"jpeg", {".jpg", ".jpeg"}, accepts_image},
      {"png", {".png"}, accepts_image},     {"bmp", {".bmp"}, accepts_image},
      {"webp", {".webp"}, accepts_image},   {"npy", {".npy"}, accepts_npy},
      {"npz", {".npz"}, accepts_npz},       {"idx", {"-ubyte", "-ubyte.gz"}, accepts_idx},
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
