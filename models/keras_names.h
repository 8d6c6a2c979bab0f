// Names of parameters: `layer/word`, with Keras' words, and how a word's values lie in a graph and in a Keras file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/tensor.h"

namespace tandem::models {

struct ParameterName {
  std::string layer, word;
};
// "block1/conv/kernel:0" -> {"block1/conv", "kernel"}; none when the last part is no word of Keras or there is no layer.
std::optional<ParameterName> parse_parameter_name(std::string_view);

// Place of a word in its layer's list of weights (trainable ones first), as Keras orders them; -1 for an unknown word.
int word_order(std::string_view word);

// How a graph's array becomes Keras': reshaped to `split`, its dimensions permuted (numpy's way: new dimension i is old dimension perm[i]), then
// reshaped to `keras`.
struct ArrayForm {
  Shape graph, split;
  std::vector<std::size_t> perm;
  Shape keras;

  static ArrayForm same(Shape graph, Shape keras);                                            // no reordering; equal element counts
  static ArrayForm permuted(const Shape& graph, Shape split, std::vector<std::size_t> perm);  // keras: the permuted shape
};
// A depthwise kernel's form: (h, w, C, M) in Keras.
bool is_depthwise(const ArrayForm&);
// float32 both ways. The operand's shape must be form.graph (form.keras); throws InvalidModel otherwise.
Tensor to_keras(const ArrayForm&, const Tensor& graph_array);
Tensor to_graph(const ArrayForm&, const Tensor& keras_array);

}  // namespace tandem::models
