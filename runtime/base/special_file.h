// Targets that a save writes into instead of replacing: devices, pipes, and the process's own descriptors (/dev/stdout). A regular file in the
// place of /dev/null breaks the machine for everybody.
#pragma once

#include <string>

namespace tandem {

// Whether `path` leads to a character device, a pipe or a socket, or is a link into /proc. False for what does not exist.
bool is_special_file(const std::string& path);
// A descriptor that writes into such a target: for /dev/stdout a copy of the process's own, so that what it prints follows. -1, errno: none.
int open_special_file(const std::string& path);

}  // namespace tandem
