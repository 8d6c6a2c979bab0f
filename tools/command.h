// A command of the program: what it is called, its options, and what it does. Each lies in a file tools/cmd_<name>.cc, which gives it by
// one function; commands.cc lists them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/console.h"
#include "tools/option_set.h"

namespace tandem::cli {

struct Command {
  std::string name, summary;  // summary: one sentence, with a full stop
  std::string example;        // lines of the help, without indentation
  // Binds the options to variables that the two functions share. May be called again (help, completion).
  std::function<void(OptionSet&)> declare;
  // Does the work with the options set; gives the exit code. Throws the errors of runtime/base/error.h.
  std::function<int(const Console&)> run;
  std::vector<Command> subcommands;  // when not empty, declare and run are not used
};

// A result as JSON text with its newline; bytes that are no UTF-8 are replaced.
template <class Json>
std::string json_text(const Json& json, int indent = 2) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

// All commands in the order of the help.
std::vector<Command> all_commands();

Command bench_command();
Command completion_command();
Command convert_command();
Command devices_command();
Command evaluate_command();
Command inspect_command();
Command plan_command();
Command predict_command();
Command run_command();
Command test_command();
Command train_command();
Command weights_command();

}  // namespace tandem::cli
