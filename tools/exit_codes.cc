#include "tools/exit_codes.h"

#include <new>

#include "runtime/base/error.h"

namespace tandem::cli {

ExitCode exit_code_of(const std::exception& e) {
  if (dynamic_cast<const UsageError*>(&e)) return kUsage;
  if (dynamic_cast<const InvalidModel*>(&e) || dynamic_cast<const Unsupported*>(&e)) return kModel;
  if (dynamic_cast<const InvalidData*>(&e)) return kData;
  if (dynamic_cast<const OutOfMemory*>(&e) || dynamic_cast<const std::bad_alloc*>(&e)) return kMemory;
  if (dynamic_cast<const DeviceError*>(&e)) return kDevice;
  return kOther;
}

}  // namespace tandem::cli
