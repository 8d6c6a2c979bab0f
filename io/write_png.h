// Writing images, for programs that make test data.
#pragma once

#include <string>

#include "io/resize.h"

namespace tandem::io {

// 8-bit gray (1 channel) or RGB (3). Saved whole (save_file.h). Throws InvalidData when the file cannot be written.
void write_png(const std::string& file, const Pixels& pixels);

}  // namespace tandem::io
