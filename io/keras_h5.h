// Keras' legacy HDF5 layout: weights-only files and whole-model files (`model.save("x.h5")`), as every Keras from 1 to 3 writes them.
//
//   /                  attributes layer_names, backend, keras_version
//   /<layer>/          attribute weight_names; data sets named by the weight, slashes make groups
//   /top_level_model_weights/   attribute weight_names
//
// Lists longer than 64,512 bytes are split into layer_names0, layer_names1, ... A whole model holds the same tree in /model_weights.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/layer_weights.h"

namespace tandem::io {

struct KerasWeights {
  std::vector<Layer> layers;                 // in the order of model.layers, layers without weights included
  std::string keras_version, backend;        // "" where the file does not say
  std::map<std::string, std::string> texts;  // the root's string attributes "tandem.preprocess", "tandem.labels" where present
  std::optional<std::string> sha256;         // tandem_sha256 where present
  std::vector<LayerWeight> extras;           // of the group /tandem, which a checkpoint has (io/checkpoint.h); part of the digest
};

// Opens `path` and lists what is in it; the values are read when asked for (LayerWeight::read keeps the file open). Other layouts (Keras 3's
// .weights.h5, .keras archives) are Unsupported; a file that cannot be read, contradicts itself, names something that is missing or reaches outside
// is InvalidModel, also later from LayerWeight::read. `layers` holds top-level model weights, where there are any, as a last layer
// "top_level_model_weights".
KerasWeights read_keras_h5(const std::string& path);
// Reads every value and compares with `sha256`; InvalidModel naming the file when they differ. Does nothing where there is no digest.
void verify_digest(const KerasWeights&, const std::string& path);

// The bytes of a weights-only file as Keras 2 writes it, with the digest and `texts` as root attributes. Weights of one layer are stored under
// the layer's group by their names, `extras` under /tandem, which Keras does not look at.
std::vector<std::byte> keras_h5_bytes(const std::vector<Layer>&, const std::map<std::string, std::string>& texts,
                                      const std::vector<LayerWeight>& extras = {});
// The same, saved whole (runtime/base/safe_file.h).
void write_keras_h5(const std::string& path, const std::vector<Layer>&, const std::map<std::string, std::string>& texts);

// SHA-256 over, for each weight in order: name, NUL, dtype, NUL, dimensions joined by ',', NUL, little-endian bytes.
std::string weights_digest(const std::vector<Layer>&, const std::vector<LayerWeight>& extras = {});

// How a list of texts is split into attributes: the fewest nearly equal parts (the first ones one longer) whose fixed-width arrays have at
// most 64,512 bytes each. Throws InvalidData when a single text is longer.
std::vector<std::vector<std::string>> split_names(const std::vector<std::string>&);

}  // namespace tandem::io
