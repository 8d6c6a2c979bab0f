// Reading a whole file into memory, safely: for images, lists and records.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::io {

// The bytes of the regular file `path` (raw path bytes, any encoding). A directory, FIFO, socket or device, a missing or unreadable
// file, and a file of more than `max_bytes` are InvalidData naming the path and the reason; nothing is allocated for a file that is too
// large, and a FIFO never blocks.
std::vector<std::uint8_t> read_file(const std::string& path, std::int64_t max_bytes);

}  // namespace tandem::io
