#include "tools/command_line.h"
#include "tools/signals.h"

int main(int argc, char** argv) {
  using namespace tandem::cli;
  report_bus_errors();
  return run_command_line(all_commands(), std::vector<std::string>(argv + 1, argv + argc), process_environment());
}
