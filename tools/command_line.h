// From the words of the command line to a command with its options set.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/command.h"

namespace tandem::cli {

// Parses and runs; gives the exit code. Every option takes the strongest source that names it: the command line, then the environment
// (TANDEM_ and the option's name, upper-case, with underscores), then the file of --config, then the default. Never throws: errors
// are told on stderr in the program's form and become exit codes.
int run_command_line(const std::vector<Command>& commands, std::vector<std::string> words, const Environment& environment);

// "0.1.0" and the versions of the libraries it was built with.
std::string version_text();

// ---- the parts, for tests

// The help texts, for `columns` characters.
std::string program_help(const std::vector<Command>& commands, std::size_t columns);
std::string command_help(const std::string& path, const Command& command, std::size_t columns);

// The options of a command, with those that every command has.
struct CommonOptions {
  std::string config;
  bool quiet = false, verbose = false, help = false;
};
OptionSet options_of(const Command& command, CommonOptions& common);

// Words to values, by the index of the option in `options`. Throws UsageError for what does not fit: unknown options, surplus words,
// missing values. Values are not looked at.
using GivenValues = std::map<std::size_t, std::vector<std::string>>;
GivenValues parse_words(const OptionSet& options, const std::vector<std::string>& words);

// A configuration file: TOML whose keys are option names without dashes. Keys at the top hold for every command that knows them, keys under
// [command] ([weights.save]) for that command alone, and win.
struct ConfigEntry {
  std::string section, key;  // section: "" or "weights.save"
  std::vector<std::string> values;
};
// Throws UsageError naming the file when it cannot be read.
std::vector<ConfigEntry> read_config(const std::string& path);

// Name ("weights save") and command of everything that runs.
std::vector<std::pair<std::string, Command>> flatten(const std::vector<Command>& commands);

}  // namespace tandem::cli
