// The documented exit codes.
#pragma once

#include <exception>
#include <string>

namespace tandem::cli {

enum ExitCode : int {
  kDone = 0,
  kOther = 1,
  kUsage = 2,   // unknown option, bad value, options that contradict each other
  kModel = 3,   // model or weights file invalid or not supported
  kData = 4,    // data invalid or missing
  kMemory = 5,  // does not fit the limit or the device
  kDevice = 6,  // device or communication failed
};

// The code of an exception by its type; anything that is not tandem's own is kOther, failed allocations are kMemory.
ExitCode exit_code_of(const std::exception&);

}  // namespace tandem::cli
