// Checkpoints of training: a folder with last.h5 and previous.h5, each a Keras weights file with a group /tandem beside it (io/keras_h5.h). A crash
// at any moment leaves at least one that is whole.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/layer_weights.h"

namespace tandem::io {

struct Checkpoint {
  std::vector<Layer> layers;        // as Keras has them; empty where the network's weights have no Keras names
  std::vector<LayerWeight> arrays;  // everything else: slots, weights without Keras names. Names are unique, "momentum/conv1/kernel"
  std::string state;                // what is no array, as the caller writes it
};

// Writes folder/last.h5; what was there becomes previous.h5. Makes the folder. Throws InvalidData.
void save_checkpoint(const std::string& folder, const Checkpoint& checkpoint, const std::map<std::string, std::string>& texts);

// The last one that is whole. A damaged last.h5 becomes damaged.h5. `note` says in one line why it is the previous one; empty where it is not. Values
// are read when asked for. Throws InvalidData where there is none, with what is wrong with both.
Checkpoint load_checkpoint(const std::string& folder, std::string& note);

// What save_checkpoint() was given as `texts`, of the last one that can be opened; its arrays are not looked at. Empty where there is none.
std::map<std::string, std::string> checkpoint_texts(const std::string& folder);

}  // namespace tandem::io
