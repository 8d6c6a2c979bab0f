// Writes images of Fashion-MNIST's test set as class folders of 64x64 PNG files: what tools/demo.sh predicts and evaluates.
//   demo_images DATASET_FOLDER OUT_FOLDER
// As the demo's network was trained: every pixel doubled (56x56), a border of 4 pixels of 0, gray.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>

#include "io/idx.h"
#include "io/resize.h"
#include "io/write_png.h"
#include "runtime/base/error.h"

namespace {

using namespace tandem;

constexpr const char* kClasses[] = {"T-shirt", "Trouser", "Pullover", "Dress", "Coat"};  // 0 to 4 of the set's ten
constexpr int kBorder = 4;

io::Pixels framed(const io::Pixels& inner) {
  io::Pixels out{inner.height + 2 * kBorder, inner.width + 2 * kBorder, 1, {}};
  out.data.assign(static_cast<std::size_t>(out.height) * static_cast<std::size_t>(out.width), 0);
  for (int y = 0; y < inner.height; ++y) {
    for (int x = 0; x < inner.width; ++x)
      out.data[static_cast<std::size_t>((y + kBorder) * out.width + x + kBorder)] = inner.data[static_cast<std::size_t>(y * inner.width + x)];
  }
  return out;
}

int write_images(const std::string& set, const std::string& folder) {
  const Tensor images = io::read_idx(set + "/t10k-images-idx3-ubyte.gz"), labels = io::read_idx(set + "/t10k-labels-idx1-ubyte.gz");
  if (images.rank() != 3 || labels.rank() != 1 || images.shape()[0] != labels.shape()[0]) throw InvalidData("images and labels do not fit together");
  const int height = static_cast<int>(images.shape()[1]), width = static_cast<int>(images.shape()[2]);
  for (const char* name : kClasses) std::filesystem::create_directories(folder + "/" + name);
  const auto pixels = images.as<std::uint8_t>();
  const auto size = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  int written = 0;
  for (std::size_t i = 0; i < labels.as<std::uint8_t>().size(); ++i) {
    const std::uint8_t label = labels.as<std::uint8_t>()[i];
    if (label >= std::size(kClasses)) continue;
    const io::Pixels doubled = io::resize(io::ResizeKind::kNearest, {&pixels[i * size], height, width, 1}, 2 * height, 2 * width);
    io::write_png(fmt::format("{}/{}/{:05}.png", folder, kClasses[label], i), framed(doubled));
    ++written;
  }
  return written;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: demo_images DATASET_FOLDER OUT_FOLDER\n");
    return 2;
  }
  try {
    fmt::print("{} images\n", write_images(argv[1], argv[2]));
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "demo_images: {}\n", e.what());
    return 4;
  }
}
