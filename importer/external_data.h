// External data of tensors: where the bytes lie in other files. Only regular files beneath the model's folder, or beneath the folder of the
// model's real path when the model is a symlink (caches keep models so), are opened: component by component, no symlinks, no "..".
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "importer/mapped_file.h"
#include "importer/tensor_wire.h"

namespace tandem {

class ExternalData {
 public:
  // `folder`: where relative locations start; empty refuses all. `second_root`: the folder of the model's real path where it differs.
  ExternalData(std::filesystem::path folder, std::filesystem::path second_root, bool allow_hard_links);

  // For a model file: its folder, and the folder of its real path when the last component of `model` is a symlink.
  static ExternalData beside(const std::filesystem::path& model, bool allow_hard_links);

  // Paths of the files read so far.
  std::vector<std::string> paths() const;

  // The tensor's value. Throws InvalidModel or InvalidData naming the tensor and what is wrong with location, offset, length or checksum.
  Tensor load(const TensorFields&);

 private:
  struct File {
    std::shared_ptr<const MappedFile> mapping;
    std::string checksum;  // SHA-1 in hex, once computed
    std::string path;
  };
  File& file(const std::string& location);

  std::filesystem::path folder_, second_root_;
  bool allow_hard_links_;
  std::map<std::string, File> files_;  // by location
};

}  // namespace tandem
