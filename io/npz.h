// numpy's .npz files: zip archives of .npy files.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/tensor.h"

struct zip;

namespace tandem::io {

// An open archive, of one thread at a time. Errors are InvalidData naming the file and the array.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path);  // regular files only
  bool has(const std::string& name) const;    // an array, without ".npy"
  // Stored and deflated entries. Its size is checked before memory is taken and its checksum after it was read.
  Tensor read(const std::string& name) const;

 private:
  std::string path_;
  std::int64_t bytes_ = 0;  // of the archive
  std::unique_ptr<::zip, void (*)(::zip*)> zip_;
};

}  // namespace tandem::io
