#include "tools/command_line.h"

int main(int argc, char** argv) {
  using namespace tandem::cli;
  return run_command_line(all_commands(), std::vector<std::string>(argv + 1, argv + argc), process_environment());
}
