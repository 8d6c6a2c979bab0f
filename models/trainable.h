// What of a network can be trained, and its head.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/training.h"

namespace tandem::models {

// What an array is called here, and its layer, by its name in the file.
struct ArrayName {
  std::string name;   // "conv1/kernel" where it is named so by Keras, else as it stands
  std::string layer;  // "conv1"; names without a word of Keras: up to the last '.' or '/'
};
ArrayName name_of_array(const std::string& in_file);

// A constant that an operator takes as weights: kernels of products, biases, scales and shifts of normalisations, slopes, embeddings. Constants that
// stand in arithmetic (scalings of pixels) are none.
struct TrainableArray {
  std::string name, layer;  // as name_of_array() says
  ValueId value = kNoValue;
  bool is_kernel = false;        // what L2 counts
  std::int32_t batch_norm = -1;  // index into batch_norm_layers() (runtime/graph/training.h) where it is gamma or beta of one
};
// In the order of the nodes, each once.
std::vector<TrainableArray> trainable_arrays(const Graph&);

// Mean 0 and variance 1 but a scale and a shift of its own: an exporter put the statistics there. A layer that was never trained has ones and zeros
// in all four.
bool batch_norm_absorbed(const Graph&, const BatchNormLayer&);
bool batch_norms_absorbed(const Graph&);  // each of them, and there are some

// The last Gemm, MatMul (with or without an Add) or 1x1 Conv before the output activation.
struct Head {
  std::string layer;
  ValueId kernel = kNoValue, bias = kNoValue;  // bias: kNoValue where there is none
  ValueId features = kNoValue;                 // what goes in
  std::int64_t inputs = 0, classes = 0;
  bool classes_first = false;  // kernel [classes, inputs, ...], else [inputs, classes]
};
// None where the graph ends in something else, or where the head's weights are computed.
std::optional<Head> find_head(const Graph&);

// Gives the head new weights for another number of classes: kernel [inputs, classes], bias [classes] (empty: zeros). Throws InvalidModel when a shape
// does not fit, Unsupported when what follows the head holds on to the old number.
void replace_head(Graph&, const Head&, const Tensor& kernel, const Tensor& bias);
// Glorot uniform: in (-l, l) with l = sqrt(6 / (inputs + classes)); the same for a seed everywhere.
Tensor glorot_uniform(std::int64_t inputs, std::int64_t classes, std::uint64_t seed);
// Puts `op` (Sigmoid, or Identity for the plain scores) in the place of the Softmax or Sigmoid that the network ends in.
void replace_activation(Graph&, const char* op);
// Puts a Dropout in front of the head.
void add_dropout(Graph&, const Head&, double rate);

}  // namespace tandem::models
