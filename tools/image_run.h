// What predict and evaluate tell about a run on images before it starts.
#pragma once

#include "tools/classifier.h"
#include "tools/console.h"
#include "tools/options.h"

namespace tandem::cli {

// Names in one line the outputs that are not looked at: the first one is taken.
void say_unused_outputs(const Graph&, const Console&);

// Warns where images of one batch cannot be shown to be independent, so that the result may depend on the batch size, and says the placement if
// asked to. False when it warned.
bool describe_run(const Classifier&, const RunFlags&, const RunOptions&, std::int64_t batch, const Console&);

}  // namespace tandem::cli
