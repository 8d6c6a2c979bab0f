// `tandem train --log`: one JSON object a line for each step.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/file_handle.h"

namespace tandem::cli {

class StepLog {
 public:
  // Begins the file anew; with `next_step` > 0 what is there is kept up to the line before that step (a run that goes on writes those behind it
  // again). Devices and pipes are written into. Throws InvalidData where the file cannot be written, or another run has it.
  StepLog(std::string path, std::int64_t next_step);
  // The line, which the system has when this returns.
  void add(const std::string& line);
  void sync();

 private:
  [[noreturn]] void fail() const;
  std::string path_;
  FileHandle file_;
};

}  // namespace tandem::cli
