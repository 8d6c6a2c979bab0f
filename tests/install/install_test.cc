// What `cmake --install` puts into a prefix serves a stranger's project: examples/predict is configured, built and run against it.
// In the release build only: a program that was not itself built with a sanitizer cannot load a library that was.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "io/idx.h"
#include "tests/support/files.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

// Image `index` of Fashion-MNIST's test set as the network models/xception_mini takes it: every pixel doubled, 4 pixels of 0 around, three equal
// channels, x / 127.5 - 1.
std::string network_input(const Tensor& images, std::size_t index) {
  constexpr std::size_t kSide = 28, kBorder = 4, kSize = 2 * (kSide + kBorder);
  const auto pixels = images.as<std::uint8_t>().subspan(index * kSide * kSide, kSide * kSide);
  std::vector<float> plane(kSize * kSize, -1.0f);
  for (std::size_t y = 0; y < 2 * kSide; ++y) {
    for (std::size_t x = 0; x < 2 * kSide; ++x)
      plane[(y + kBorder) * kSize + x + kBorder] = static_cast<float>(pixels[y / 2 * kSide + x / 2]) / 127.5f - 1.0f;
  }
  std::string bytes;
  for (int channel = 0; channel < 3; ++channel) bytes.append(reinterpret_cast<const char*>(plane.data()), plane.size() * sizeof(float));
  return bytes;
}

void run_well(const std::vector<std::string>& argv) {
  const Finished r = run_program(argv, {.timeout_seconds = 300});
  ASSERT_EQ(r.code, 0) << argv[1] << "\n" << r.out << r.err;
}

TEST(Install, TheExampleIsBuiltAgainstItAndPredicts) {
  const TemporaryFolder folder;
  // Installed, then moved: nothing in it may name where it was made.
  run_well({TANDEM_CMAKE, "--install", TANDEM_BINARY_DIR, "--prefix", folder / "made"});
  std::filesystem::rename(folder / "made", folder / "prefix");
  run_well({TANDEM_CMAKE, "-S", TANDEM_SOURCE_DIR "/examples/predict", "-B", folder / "build", "-DCMAKE_PREFIX_PATH=" + (folder / "prefix"),
            "-DCMAKE_BUILD_TYPE=Release"});
  run_well({TANDEM_CMAKE, "--build", folder / "build"});

  // What Keras 3 said of these images with the weights of this network. The last one's label is 4.
  const std::pair<std::size_t, int> truth[] = {{19, 0}, {2, 1}, {1, 2}, {13, 3}, {6, 4}, {25, 2}};
  const Tensor images = io::read_idx("/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz");
  std::vector<std::string> argv = {folder / "build/predict", trained_network()};
  std::string want;
  for (const auto& [index, label] : truth) {
    argv.push_back(folder.write(std::to_string(index) + ".f32", network_input(images, index)));
    want += argv.back() + ": class " + std::to_string(label) + "\n";
  }
  const Finished r = run_program(argv);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, want);

  const Finished broken = run_program({argv[0], argv[1], folder.write("short.f32", "abc")});
  EXPECT_EQ(broken.code, 1);
  EXPECT_NE(broken.err.find("expected 49152 bytes"), std::string::npos) << broken.err;
}

TEST(Install, TheProgramFindsItsLibraryWhereverItIsPut) {
  const TemporaryFolder folder;
  run_well({TANDEM_CMAKE, "--install", TANDEM_BINARY_DIR, "--prefix", folder / "made"});
  std::filesystem::rename(folder / "made", folder / "prefix");
  const Finished r = run_program({folder / "prefix/bin/tandem", "--version"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(r.out.starts_with("tandem ")) << r.out;
}

}  // namespace
}  // namespace tandem::test
