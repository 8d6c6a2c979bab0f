// The digest of a file, by which it is known again.
#pragma once

#include <string>

namespace tandem::io {

// SHA-256 of a regular file's bytes in hex, read piece by piece. Throws InvalidData as read_file() does.
std::string file_sha256(const std::string& path);

}  // namespace tandem::io
