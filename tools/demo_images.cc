// Writes images of Fashion-MNIST as class folders of 64x64 PNG files, for tools/demo.sh:
//   demo_images DATASET_FOLDER OUT_FOLDER
//   OUT/images           the test images of classes 0 to 4, which the demo's network knows
//   OUT/new/train, val   4,000 training images and the test images of classes 5 to 9, which it learns
// As the network was trained: every pixel doubled (56x56), a border of 4 pixels of 0, gray.
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

constexpr const char* kClasses[] = {"T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"};
constexpr std::size_t kKnown = 5;  // classes of the network
constexpr int kTraining = 4000;
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

// The first `most` images of the classes [first, last) of one of the set's parts ("train", "t10k").
int write_images(const std::string& set, const std::string& part, const std::string& folder, std::size_t first, std::size_t last, int most) {
  const Tensor images = io::read_idx(fmt::format("{}/{}-images-idx3-ubyte.gz", set, part)),
               labels = io::read_idx(fmt::format("{}/{}-labels-idx1-ubyte.gz", set, part));
  if (images.rank() != 3 || labels.rank() != 1 || images.shape()[0] != labels.shape()[0]) throw InvalidData("images and labels do not fit together");
  const int height = static_cast<int>(images.shape()[1]), width = static_cast<int>(images.shape()[2]);
  for (std::size_t c = first; c < last; ++c) std::filesystem::create_directories(folder + "/" + kClasses[c]);
  const auto pixels = images.as<std::uint8_t>();
  const auto size = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  int written = 0;
  for (std::size_t i = 0; i < labels.as<std::uint8_t>().size() && written < most; ++i) {
    const std::uint8_t label = labels.as<std::uint8_t>()[i];
    if (label < first || label >= last) continue;
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
    const std::string set = argv[1], out = argv[2];
    constexpr int kAll = 1 << 30;
    fmt::print("{} images of the classes that the network knows\n", write_images(set, "t10k", out + "/images", 0, kKnown, kAll));
    const int trained = write_images(set, "train", out + "/new/train", kKnown, std::size(kClasses), kTraining);
    fmt::print("{} and {} images of five new classes\n", trained, write_images(set, "t10k", out + "/new/val", kKnown, std::size(kClasses), kAll));
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "demo_images: {}\n", e.what());
    return 4;
  }
}
