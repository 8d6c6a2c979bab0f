// What of a network can be fine-tuned, in words: `convert --trainable`.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace tandem::cli {

// Makes the graph what training wants, without changing its function: weights that are computed from constants become constants, weights that an
// exporter merged are taken apart. Returns what was repaired, a line for each kind; empty when nothing was.
std::vector<std::string> repair_for_training(Graph&);

// The same, and a report, a line for each subject: what was repaired, parameters, batch norm, dropout, batch, head, loss, names, and the first node
// that has no gradient. Throws Unsupported when there is nothing to train.
std::string make_trainable(Graph&);

}  // namespace tandem::cli
