// Who may include whom, and where the vendors' headers live.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/house/source_tree.h"

namespace tandem::test {
namespace {

// base <- runtime <- {importer, io, models, parallel} <- tools. runtime/base/ is the folder "base" here.
std::string room_of(const std::string& path) { return path.starts_with("runtime/base/") ? "base" : path.substr(0, path.find('/')); }

const std::map<std::string, std::vector<std::string>>& allowed() {
  static const std::map<std::string, std::vector<std::string>> rooms = {
      {"base", {"base"}},
      {"runtime", {"base", "runtime"}},
      {"importer", {"base", "runtime", "importer"}},
      {"io", {"base", "runtime", "io"}},
      {"models", {"base", "runtime", "models"}},
      {"parallel", {"base", "runtime", "parallel"}},
      {"tools", {"base", "runtime", "importer", "io", "models", "parallel", "tools"}},
      {"examples", {"tools"}},
      {"tests", {"base", "runtime", "importer", "io", "models", "parallel", "tools", "tests"}},
  };
  return rooms;
}

bool contains(const std::vector<std::string>& list, const std::string& item) {
  for (const std::string& s : list) {
    if (s == item) return true;
  }
  return false;
}

TEST(Includes, FollowTheDirections) {
  for (const SourceFile& file : source_files()) {
    const std::string from = room_of(file.path);
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const Include include = include_of(file.lines[i]);
      if (!include.quoted) continue;
      EXPECT_TRUE(contains(allowed().at(from), room_of(include.name))) << file.at(i) << ": " << from << " may not include " << include.name;
    }
  }
}

TEST(Includes, AreRelativeToTheRoot) {
  for (const SourceFile& file : source_files()) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const Include include = include_of(file.lines[i]);
      if (!include.quoted) continue;
      const bool there = std::filesystem::exists(std::filesystem::path(TANDEM_SOURCE_DIR) / include.name) ||
                         std::filesystem::exists(std::filesystem::path(TANDEM_BINARY_DIR) / include.name);
      EXPECT_TRUE(there) << file.at(i) << ": " << include.name << " is not a path from the root";
    }
  }
}

// A vendor's headers and the path prefixes that may use them.
struct Vendor {
  const char* name;
  std::vector<std::string> headers;  // prefixes of the included name
  std::vector<std::string> places;   // prefixes of the including path
};

const std::vector<Vendor>& vendors() {
  static const std::vector<Vendor> list = {
      {"protobuf and ONNX", {"onnx/", "google/protobuf/"}, {"importer/"}},
      {"HDF5", {"hdf5", "H5"}, {"io/"}},
      {"image codecs", {"jpeglib.h", "jerror.h", "turbojpeg.h", "spng.h", "png.h", "webp/"}, {"io/"}},
      {"zlib and libzip", {"zlib.h", "zip.h"}, {"io/"}},
      {"oneDNN", {"dnnl", "oneapi/dnnl"}, {"runtime/cpu/", "runtime/ops/"}},
      {"Highway", {"hwy/"}, {"runtime/cpu/", "runtime/ops/"}},
      {"the network", {"sys/socket.h", "netdb.h", "netinet/", "arpa/", "curl/"}, {"parallel/"}},
      {"archives that unpack to files", {"archive.h", "libtar.h", "tar.h"}, {}},
      {"CLI11", {"CLI/"}, {"tools/"}},
      {"MPI", {"mpi.h"}, {"parallel/mpi_group.cc"}},
  };
  return list;
}

bool starts_with_any(const std::string& text, const std::vector<std::string>& prefixes) {
  for (const std::string& p : prefixes) {
    if (text.starts_with(p)) return true;
  }
  return false;
}

TEST(Includes, KeepEachVendorInItsPlace) {
  for (const SourceFile& file : source_files()) {
    if (!is_product(file)) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const Include include = include_of(file.lines[i]);
      for (const Vendor& vendor : vendors()) {
        if (!starts_with_any(include.name, vendor.headers)) continue;
        EXPECT_TRUE(starts_with_any(file.path, vendor.places)) << file.at(i) << ": " << vendor.name << " does not belong here";
      }
    }
  }
}

bool is_cuda_place(const std::string& path) {
  return path.starts_with("runtime/cuda/") || path.ends_with("_cuda.cc") || path.ends_with(".cu") || path.ends_with(".cuh");
}

TEST(Includes, KeepCudaInThePlugin) {
  for (const SourceFile& file : source_files()) {
    if (is_cuda_place(file.path)) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const Include include = include_of(file.lines[i]);
      EXPECT_FALSE(starts_with_any(include.name, {"cuda", "cudnn", "cublas", "nccl", "driver_types.h"})) << file.at(i) << ": " << include.name;
    }
  }
}

}  // namespace
}  // namespace tandem::test
