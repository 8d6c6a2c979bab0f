#include <fmt/format.h>

#include "tools/command.h"
#include "tools/command_line.h"

namespace tandem::cli {

std::vector<Command> all_commands() {
  return {
      inspect_command(), convert_command(), evaluate_command(), predict_command(), run_command(),        test_command(),
      bench_command(),   plan_command(),    weights_command(),  devices_command(), completion_command(),
  };
}

std::string version_text() { return fmt::format("tandem {}\nbuilt with {}", TANDEM_VERSION, TANDEM_BUILT_WITH); }

}  // namespace tandem::cli
