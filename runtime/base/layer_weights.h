// Weights by layer, as Keras' files order them: the neutral form between files (io/keras_h5.h) and graphs (models/weights_map.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/tensor.h"

namespace tandem {

struct LayerWeight {
  std::string name;  // as in the file: "block1_conv1/kernel:0"; the last word after '/' and before ':' tells what it is
  DType dtype = DType::kNone;
  Shape shape;                   // in Keras' order of dimensions
  std::function<Tensor()> read;  // the values; reads a file, so may throw InvalidModel
};

struct Layer {
  std::string name;
  std::vector<LayerWeight> weights;  // in Keras' order; may be empty
};

// The word of a weight's name: "block1_conv1/kernel:0" -> "kernel".
inline std::string weight_word(const std::string& name) {
  const std::size_t slash = name.rfind('/'), begin = slash == std::string::npos ? 0 : slash + 1;
  return name.substr(begin, name.rfind(':') == std::string::npos || name.rfind(':') < begin ? std::string::npos : name.rfind(':') - begin);
}

}  // namespace tandem
