// What a network shows of the pixels that it wants.
#pragma once

#include <string>

#include "runtime/graph/graph.h"

namespace tandem::models {

// The network scales its first input by itself, as one that takes pixels from 0 to 255 does: before anything else each channel is multiplied by 1/32
// at most (Keras' Rescaling has 1/255 or 1/127.5; a network that normalises numbers from 0 to 1 multiplies by more than 1). Name of the node that
// scales; empty: not so.
std::string own_rescaling(const Graph&);

}  // namespace tandem::models
