// Runs a program and catches what it says.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tandem::test {

struct Finished {
  int code = -1;   // exit code; -1 when it died of a signal or was killed
  int signal = 0;  // the signal it died of
  bool timed_out = false;
  std::string out, err;
  double seconds = 0;       // from start to end
  long peak_kilobytes = 0;  // most memory at once, of it and of its children that ended (never less than the caller had)
};

struct Launch {
  std::map<std::string, std::string> environment = {};  // added to the caller's
  int timeout_seconds = 60;                             // then it is killed
};

// argv[0] is the path of the program. Throws std::runtime_error when it cannot be started.
Finished run_program(const std::vector<std::string>& argv, const Launch& launch = {});
// The program tandem of this build.
Finished run_tandem(std::vector<std::string> arguments, const Launch& launch = {});

}  // namespace tandem::test
