#include "tools/signals.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <string_view>

#include "tools/exit_codes.h"

namespace tandem::cli {
namespace {

// A handler can reach nothing else.
volatile std::sig_atomic_t stop = 0, save = 0;
constexpr std::array kWatched = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

void on_signal(int number) {
  if (number == SIGHUP) {
    save = 1;
    return;
  }
  if (stop != 0 && number != SIGUSR1) _exit(128 + number);
  stop = number;
}

void on_bus_error(int, siginfo_t* info, void*) {
  if (info->si_code != BUS_ADRERR) return;  // comes again, and then ends the process: the machine's memory failed
  constexpr std::string_view kText =
      "tandem: error: a file that is read through memory (a model, or its external data) was made shorter while it was read\n"
      "copy it before it is changed, or replace it by renaming another file over it\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
  _exit(kModel);
}

}  // namespace

void report_bus_errors() {
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESETHAND);
  sigaction(SIGBUS, &action, nullptr);
}

SignalWatch::SignalWatch() {
  stop = 0;
  save = 0;
  for (const int number : kWatched) {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, nullptr);
  }
}

SignalWatch::~SignalWatch() {
  for (const int number : kWatched) std::signal(number, SIG_DFL);
}

int SignalWatch::stop_signal() const { return stop; }

bool SignalWatch::take_save() const {
  const bool asked = save != 0;
  save = 0;
  return asked;
}

}  // namespace tandem::cli
