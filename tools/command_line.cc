#include "tools/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "runtime/base/error.h"
#include "tools/exit_codes.h"

namespace tandem::cli {
namespace {

// A command as the words named it.
struct Chosen {
  std::string path;  // "weights save"
  const Command* command = nullptr;
};

std::vector<std::string> names_of(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& c : commands) names.push_back(c.name);
  return names;
}

std::string suggestion(const std::string& text, const std::vector<std::string>& candidates) {
  const auto close = nearest(text, candidates);
  return close ? fmt::format("; did you mean {}?", *close) : "";
}

const Command& find_command(const std::vector<Command>& commands, const std::string& name, const std::string& parent) {
  for (const Command& c : commands) {
    if (c.name == name) return c;
  }
  const auto names = names_of(commands);
  throw UsageError(fmt::format("unknown command \"{}{}\"{}\nexpected one of: {}", parent, name, suggestion(name, names), fmt::join(names, ", ")));
}

// Takes the command's name (two words for groups) from the front of `words`.
Chosen choose(const std::vector<Command>& commands, std::vector<std::string>& words) {
  Chosen chosen;
  const std::vector<Command>* level = &commands;
  do {
    if (words.empty() || words[0].starts_with("-")) {
      throw UsageError(fmt::format("{} expects a command, found {}\nexpected one of: {}", "tandem" + (chosen.path.empty() ? "" : " " + chosen.path),
                                   words.empty() ? "none" : "\"" + words[0] + "\"", fmt::join(names_of(*level), ", ")));
    }
    chosen.command = &find_command(*level, words[0], chosen.path.empty() ? "" : chosen.path + " ");
    chosen.path += (chosen.path.empty() ? "" : " ") + words[0];
    words.erase(words.begin());
    level = &chosen.command->subcommands;
  } while (!level->empty() && !(words.size() == 1 && (words[0] == "--help" || words[0] == "-h")));
  return chosen;
}

const OptionSpec* find_option(const OptionSet& options, const std::string& key, std::size_t* index = nullptr) {
  for (std::size_t i = 0; i < options.specs().size(); ++i) {
    const OptionSpec& spec = options.specs()[i];
    for (const std::string& name : spec.names) {
      if (name != "--" + key && !(spec.positional && spec.key() == key)) continue;
      if (index) *index = i;
      return &spec;
    }
  }
  return nullptr;
}

// Every key must belong to some command; throws UsageError otherwise.
void check_config(const std::vector<ConfigEntry>& entries, const std::vector<Command>& commands) {
  std::vector<std::string> sections;
  for (const auto& [path, command] : flatten(commands)) {
    sections.push_back(path);
    std::replace(sections.back().begin(), sections.back().end(), ' ', '.');
  }
  for (const ConfigEntry& entry : entries) {
    if (!entry.section.empty() && std::find(sections.begin(), sections.end(), entry.section) == sections.end()) {
      throw UsageError(fmt::format("section [{}] is not a command{}", entry.section, suggestion(entry.section, sections)));
    }
    std::vector<std::string> known;
    bool found = false;
    for (const auto& [path, command] : flatten(commands)) {
      std::string section = path;
      std::replace(section.begin(), section.end(), ' ', '.');
      if (!entry.section.empty() && section != entry.section) continue;
      CommonOptions common;
      const OptionSet options = options_of(command, common);
      found = found || find_option(options, entry.key);
      for (const OptionSpec& spec : options.specs()) known.push_back(spec.key());
    }
    if (!found) throw UsageError(fmt::format("unknown option \"{}\"{}", entry.key, suggestion(entry.key, known)));
  }
}

// What the file says for the command at `path`, by option.
GivenValues config_values(const std::string& file, const OptionSet& options, std::string path, const std::vector<Command>& commands) {
  std::replace(path.begin(), path.end(), ' ', '.');
  const std::vector<ConfigEntry> entries = read_config(file);
  return with_context([&] { return file; },
                      [&] {
                        check_config(entries, commands);
                        GivenValues values;
                        for (const std::string& section : {std::string(), path}) {
                          for (const ConfigEntry& entry : entries) {
                            std::size_t index = 0;
                            if (entry.section != section || !find_option(options, entry.key, &index)) continue;
                            if (entry.values.size() != 1 && !options.specs()[index].repeatable) {
                              throw UsageError(fmt::format("option {}: expected one value, found {}", entry.key, entry.values.size()));
                            }
                            values[index] = entry.values;
                          }
                        }
                        return values;
                      });
}

GivenValues environment_values(const OptionSet& options, const Environment& environment) {
  GivenValues values;
  for (std::size_t i = 0; i < options.specs().size(); ++i) {
    const OptionSpec& spec = options.specs()[i];
    const auto value = spec.positional || spec.key() == "help" ? std::nullopt : environment(spec.variable());
    if (value && !value->empty()) values[i] = {*value};
  }
  return values;
}

void assign(const OptionSpec& spec, const std::vector<std::string>& values, const std::string& source) {
  try {
    spec.assign(values);
  } catch (const UsageError& e) {
    throw UsageError(fmt::format("{} {}{}: {}", spec.positional ? "argument" : "option", spec.positional ? spec.names.front() : "--" + spec.key(),
                                 source, e.message()));
  }
}

// The three sources merged into the bound variables.
void set_options(const Chosen& chosen, const std::vector<std::string>& words, const Environment& environment, const std::vector<Command>& commands,
                 const OptionSet& options, CommonOptions& common) {
  const GivenValues given = parse_words(options, words);
  const GivenValues from_environment = environment_values(options, environment);
  std::size_t config = 0;
  find_option(options, "config", &config);
  for (const GivenValues* source : {&from_environment, &given}) {
    if (source->contains(config)) common.config = source->at(config).back();
  }
  const GivenValues from_file = common.config.empty() ? GivenValues() : config_values(common.config, options, chosen.path, commands);
  for (std::size_t i = 0; i < options.specs().size(); ++i) {
    const OptionSpec& spec = options.specs()[i];
    if (given.contains(i)) {
      assign(spec, given.at(i), "");
    } else if (from_environment.contains(i)) {
      assign(spec, from_environment.at(i), fmt::format(" (from {} in the environment)", spec.variable()));
    } else if (from_file.contains(i)) {
      assign(spec, from_file.at(i), fmt::format(" (from {})", common.config));
    } else if (spec.required && !common.help) {
      throw UsageError(spec.positional ? fmt::format("argument {} is missing", spec.names.front())
                                       : fmt::format("option --{} is required", spec.key()));
    }
  }
}

bool wants_help(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::any_of(words.begin(), end, [](const std::string& w) { return w == "--help" || w == "-h"; });
}

int run_chosen(const Chosen& chosen, const std::vector<std::string>& words, const Environment& environment, const std::vector<Command>& commands,
               Console& console) {
  CommonOptions common;
  try {
    const OptionSet options = options_of(*chosen.command, common);
    set_options(chosen, words, environment, commands, options, common);
  } catch (UsageError& e) {
    throw UsageError(fmt::format("{}\n\"tandem {} --help\" tells what it takes", e.what(), chosen.path));
  }
  console.quiet = console.quiet || common.quiet;
  console.verbose = console.verbose || common.verbose;
  return chosen.command->run(console);
}

int dispatch_words(const std::vector<Command>& commands, std::vector<std::string> words, const Environment& environment, Console& console) {
  while (!words.empty() && words[0].starts_with("-")) {
    if (words[0] == "--help" || words[0] == "-h") {
      print(program_help(commands, console.columns));
      return kDone;
    }
    if (words[0] == "--version") {
      print(version_text() + "\n");
      return kDone;
    }
    const bool quiet = words[0] == "-q" || words[0] == "--quiet", verbose = words[0] == "-v" || words[0] == "--verbose";
    if (!quiet && !verbose) throw UsageError(fmt::format("unknown option {}\n\"tandem --help\" lists the commands", words[0]));
    console.quiet = console.quiet || quiet;
    console.verbose = console.verbose || verbose;
    words.erase(words.begin());
  }
  const Chosen chosen = choose(commands, words);
  if (wants_help(words)) {
    print(command_help(chosen.path, *chosen.command, console.columns));
    return kDone;
  }
  return run_chosen(chosen, words, environment, commands, console);
}

}  // namespace

std::vector<std::pair<std::string, Command>> flatten(const std::vector<Command>& commands) {
  std::vector<std::pair<std::string, Command>> flat;
  for (const Command& c : commands) {
    if (c.subcommands.empty()) flat.emplace_back(c.name, c);
    for (const Command& sub : c.subcommands) flat.emplace_back(c.name + " " + sub.name, sub);
  }
  return flat;
}

OptionSet options_of(const Command& command, CommonOptions& common) {
  OptionSet options;
  command.declare(options);
  options.group("General");
  options.text("--config", "FILE.toml", common.config, "take options from a TOML file; the command line and TANDEM_... variables win");
  options.flag("--quiet,-q", common.quiet, "warnings and errors only");
  options.flag("--verbose,-v", common.verbose, "say more");
  options.flag("--help,-h", common.help, "show this");
  return options;
}

int run_command_line(const std::vector<Command>& commands, std::vector<std::string> words, const Environment& environment) {
  Console console = Console::detect(environment);
  try {
    const int code = dispatch_words(commands, std::move(words), environment, console);
    finish_output();
    return code;
  } catch (const std::bad_alloc&) {
    console.error("the system has no more memory");
    return kMemory;
  } catch (const std::exception& e) {
    console.error(e.what());
    return exit_code_of(e);
  }
}

}  // namespace tandem::cli
