// The parameters of a graph as Keras layers, and back: for networks whose constants are named `layer/word` and correspond one to one to Keras
// weights (batch norm kept). Others are refused with the constants that stand in the way.
#pragma once

#include <string>
#include <vector>

#include "models/keras_names.h"
#include "runtime/base/layer_weights.h"
#include "runtime/graph/graph.h"

namespace tandem::models {

struct Parameter {
  std::string word;  // "kernel"
  ValueId value = kNoValue;
  ArrayForm form;
};
struct ParameterLayer {
  std::string name;
  std::vector<Parameter> parameters;  // in Keras' order
};

// The layers of an imported graph (before passes) in the order of Keras' model.layers: by depth from the outputs, ties by first visit.
// Throws Unsupported naming the constants that have no Keras name or no Keras counterpart (folded batch norm, merged weights).
std::vector<ParameterLayer> parameter_layers(const Graph&);

// The graph's weights as Keras 2 names and stores them, for io/keras_h5.h. The tensors are made when they are read.
std::vector<Layer> keras_layers(const Graph&);

// Every constant that a node takes, in the order of the nodes, named and stored as the file has it: to look at and to compare, for networks that
// keras_layers() refuses too. Where it can be trained, `train --freeze` takes it by this name.
std::vector<Layer> own_layers(const Graph&);

enum class Match { kAuto, kName, kOrder };

struct LoadOptions {
  // kName: by layer name and word (weights of nested models by their own path). kOrder: layers with weights by position, then weights by
  // position, as Keras does. kAuto: by name when every layer of the graph is in the file, else by order.
  Match match = Match::kAuto;
  bool allow_missing = false;   // parameters without a weight in the file keep their values
  bool allow_mismatch = false;  // so do those whose weight has another shape
};

struct LoadReport {
  struct Pair {
    std::string parameter, weight;  // "block1_conv1/kernel", "block1_conv1 block1_conv1/kernel:0"
    Shape expected, found;          // in Keras' order
  };
  Match match = Match::kName;
  std::vector<Pair> used, mismatched;
  std::vector<std::string> missing, unused;  // parameters of the graph; weights of the file
};

// Puts the file's weights into the graph's constants. All or nothing: on an error the graph is as before. Throws InvalidModel when nothing
// matches, a parameter is missing or a shape differs (unless allowed), naming layer and both shapes.
LoadReport load_weights(Graph&, const std::vector<Layer>& file, const LoadOptions&);

}  // namespace tandem::models
