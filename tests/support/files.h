// Files of tests: folders that go with the test, whole files as text, and the trained network that many tests run.
#pragma once

#include <string>

namespace tandem::test {

// A fresh folder below the system's temporary one, removed with all in it by the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file, and the folders it lies in, and gives its path.
  std::string write(const std::string& name, const std::string& bytes = "") const;
  // Entries of the folder itself.
  std::size_t files() const;

 private:
  std::string path_;
};

// The bytes of a file; empty when it cannot be read.
std::string read_text(const std::string& file);

// models/xception_mini/trainable.onnx: 64x64 images, five classes.
std::string trained_network();

}  // namespace tandem::test
