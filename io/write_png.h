// Writing images: thumbnails of reports, test data.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "io/resize.h"

namespace tandem::io {

// 8-bit gray (1 channel) or RGB (3) as the bytes of a PNG file.
std::vector<std::byte> encode_png(const Pixels& pixels);
// The same, saved whole (runtime/base/safe_file.h). Throws InvalidData when the file cannot be written.
void write_png(const std::string& file, const Pixels& pixels);

}  // namespace tandem::io
