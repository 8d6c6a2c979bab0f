#include "tools/signals.h"

#include <unistd.h>

#include <array>
#include <csignal>

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

}  // namespace

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
