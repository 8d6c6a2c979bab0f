#include <fmt/format.h>

#include <algorithm>

#include "tools/command.h"
#include "tools/command_line.h"

namespace tandem::cli {

std::vector<Command> all_commands() {
  return {
      inspect_command(), convert_command(), train_command(), evaluate_command(), predict_command(), run_command(),
      test_command(),    bench_command(),   plan_command(),  weights_command(),  devices_command(), completion_command(),
  };
}

std::string version_text() {
  std::string libraries = TANDEM_BUILT_WITH;
  std::replace(libraries.begin(), libraries.end(), '|', '\n');
  return fmt::format("tandem {}\nbuilt with\n{}", TANDEM_VERSION, libraries);
}

}  // namespace tandem::cli
