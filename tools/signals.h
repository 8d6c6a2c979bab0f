// What signals ask of a run that can stop between two steps, and what SIGBUS means.
#pragma once

namespace tandem::cli {

// While one of these lives: SIGINT, SIGTERM and SIGUSR1 ask for a stop, SIGHUP for a save; a second SIGINT or SIGTERM ends the process at once.
// One at a time; made and destroyed on the main thread.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  int stop_signal() const;  // 0: none came
  bool take_save() const;   // SIGHUP came since the last call
};

// From here on a mapped file that is made shorter in the moment of reading ends the process with an error and exit code 3 instead of SIGBUS (what is
// shorter before that, MappedFile notices).
void report_bus_errors();

}  // namespace tandem::cli
