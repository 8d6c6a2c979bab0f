// A trial run in a child process: for libraries that damaged files can crash or keep busy for ever.
#pragma once

#include <functional>
#include <string>

namespace tandem::io {

// Runs `trial` in a child process that may take `seconds` and `memory_bytes` more than this process has. An Error that it throws is thrown
// here; a child that crashes, runs out of memory or of time is InvalidModel: `what` is damaged. The trial must only read. Meant for
// the start of a program: a lock that another thread holds at the moment of the fork stays held in the child. Where no process can be made
// nothing is tried.
void run_guarded(const std::string& what, int seconds, std::size_t memory_bytes, const std::function<void()>& trial);

}  // namespace tandem::io
