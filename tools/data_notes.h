// What is told of a labelled set before it is used. For train and evaluate.
#pragma once

#include <string>

#include "io/dataset.h"
#include "tools/console.h"

namespace tandem::cli {

// Class folders that hold no image (in a set that trains they are no classes); hidden folders with images, which are left out. Samples that are
// numbers, as `record` is for bytes alone, with a warning where they look like pixels that nobody normalised.
void say_notes(const io::Dataset&, const std::string& path, const io::Preprocess& record, const Console&);

}  // namespace tandem::cli
