#include "io/file_digest.h"

#include <algorithm>
#include <vector>

#include "io/file_handle.h"
#include "runtime/base/sha256.h"

namespace tandem::io {

std::string file_sha256(const std::string& path) {
  const FileHandle file(path);
  std::vector<char> piece(std::size_t{1} << 20);
  Sha256 sha;
  for (std::int64_t at = 0; at < file.size();) {
    const auto n = static_cast<std::size_t>(std::min<std::int64_t>(static_cast<std::int64_t>(piece.size()), file.size() - at));
    file.read_at(at, piece.data(), n);
    sha.update(piece.data(), n);
    at += static_cast<std::int64_t>(n);
  }
  return sha.hex();
}

}  // namespace tandem::io
