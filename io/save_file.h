// Writing a file so that a crash leaves the old or the new one, never a mix.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tandem::io {

// Writes `bytes` to a new file beside `path`, syncs it, renames it to `path` and syncs the folder. The target itself is never opened, so a link
// there is replaced, not followed. Left-overs of earlier saves to the same path whose process is gone are removed first. Throws InvalidData
// naming the path; the old file is then untouched. Devices, pipes and /dev/stdout are written into instead (special_file.h).
void save_file(const std::string& path, std::span<const std::byte> bytes);
void save_file(const std::string& path, std::string_view text);

}  // namespace tandem::io
