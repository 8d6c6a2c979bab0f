#include <fmt/format.h>

#include "tools/command.h"
#include "tools/command_line.h"

namespace tandem::cli {

std::vector<Command> all_commands() {
  return {
      run_command(), test_command(), bench_command(), plan_command(), devices_command(), completion_command(),
  };
}

std::string version_text() { return fmt::format("tandem {}\nbuilt with {}", TANDEM_VERSION, TANDEM_BUILT_WITH); }

}  // namespace tandem::cli
