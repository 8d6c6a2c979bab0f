// MNIST's kind of data set: an idx file of images, one of labels beside it.
#include <string>

#include "io/dataset_sources.h"
#include "io/idx.h"

namespace tandem::io {
namespace {

// "a/t10k-images-idx3-ubyte.gz" -> "a/t10k-labels-idx1-ubyte.gz", the same with "images.idx3"; packed or not. "" when there is none.
std::string labels_beside(const std::string& images) {
  const std::size_t name = images.rfind('/') + 1;  // 0 without a folder
  for (const char* const between : {"-", "."}) {
    const std::string from = std::string("images") + between + "idx3";
    const std::size_t at = images.rfind(from);
    if (at == std::string::npos || at < name) continue;
    std::string labels = images;
    labels.replace(at, from.size(), std::string("labels") + between + "idx1");
    if (exists(labels)) return labels;
    if (labels.ends_with(".gz"))
      labels.resize(labels.size() - 3);
    else
      labels += ".gz";
    if (exists(labels)) return labels;
  }
  return {};
}

}  // namespace

std::unique_ptr<Dataset> open_idx(const std::string& path, const DatasetOptions& o) {
  const std::string labels = labels_beside(path);
  return open_arrays(path, read_idx(path), labels.empty() ? Tensor() : read_idx(labels), {}, o);
}

}  // namespace tandem::io
