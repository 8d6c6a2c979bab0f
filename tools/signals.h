// What signals ask of a run that can stop between two steps.
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

}  // namespace tandem::cli
