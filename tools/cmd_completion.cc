// `tandem completion`: scripts for three shells, made from the options' own data.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "runtime/base/error.h"
#include "tools/command.h"
#include "tools/command_line.h"

namespace tandem::cli {
namespace {

struct Entry {
  std::string path, summary;
  std::vector<OptionSpec> options;
};

std::vector<Entry> entries() {
  std::vector<Entry> list;
  for (const auto& [path, command] : flatten(all_commands())) {
    CommonOptions common;
    list.push_back({path, command.summary, options_of(command, common).specs()});
  }
  return list;
}

// First words of the commands, each once: "weights" stands for its group.
std::vector<std::pair<std::string, std::string>> first_words() {
  std::vector<std::pair<std::string, std::string>> words;
  for (const Command& c : all_commands()) words.emplace_back(c.name, c.summary);
  return words;
}

std::string quoted(std::string text, const std::string& special) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      if (special.find(c) != std::string::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string bash_script() {
  std::vector<std::string> words;
  for (const auto& [word, summary] : first_words()) words.push_back(word);
  std::string groups, options, values;
  for (const Command& c : all_commands()) {
    std::vector<std::string> subs;
    for (const Command& sub : c.subcommands) subs.push_back(sub.name);
    if (!subs.empty()) groups += fmt::format("    {}) words='{}' ;;\n", c.name, fmt::join(subs, " "));
  }
  for (const Entry& entry : entries()) {
    std::vector<std::string> names;
    for (const OptionSpec& spec : entry.options) {
      if (!spec.positional) names.insert(names.end(), spec.names.begin(), spec.names.end());
      for (std::string name : spec.names) {
        if (spec.positional) name = entry.path;  // the word before the first argument
        if (!spec.choices.empty()) values += fmt::format("    '{} {}') words='{}' ;;\n", entry.path, name, fmt::join(spec.choices, " "));
      }
    }
    options += fmt::format("    '{}') options='{}' ;;\n", entry.path, fmt::join(names, " "));
  }
  return fmt::format(R"(# bash completion for tandem: source <(tandem completion bash)
_tandem() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command= words= options= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${{COMP_WORDS[i]}} == -* ]] && continue
    if [[ -z $command ]]; then command=${{COMP_WORDS[i]}}; else
      case $command in
{3}      esac
      [[ -n $words ]] && command+=" ${{COMP_WORDS[i]}}"
      words=
      break
    fi
  done
  case "$command $previous" in
{2}  esac
  if [[ -z $words ]]; then
    case $command in
    '') words='{0}' ;;
{3}{1}    esac
    [[ $current == -* ]] && words=$options
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _tandem tandem
)",
                     fmt::join(words, " "), options, values, groups);
}

std::string zsh_value(const OptionSpec& spec) {
  if (spec.flag) return "";
  const std::string what = quoted(spec.metavar, ":[]");
  return spec.choices.empty() ? fmt::format(":{}:_files", what) : fmt::format(":{}:({})", what, fmt::join(spec.choices, " "));
}

std::string zsh_script() {
  std::string commands, cases;
  for (const auto& [word, summary] : first_words()) commands += fmt::format("    '{}:{}'\n", word, quoted(summary, ":"));
  for (const Command& c : all_commands()) {
    std::vector<std::string> subs;
    for (const Command& sub : c.subcommands) subs.push_back("'" + sub.name + ":" + quoted(sub.summary, ":") + "'");
    if (!subs.empty()) commands += fmt::format("  )\n  local -a {}_commands=(\n    {}\n", c.name, fmt::join(subs, "\n    "));
  }
  for (const Entry& entry : entries()) {
    cases += fmt::format("    '{}'{})\n      _arguments -S \\\n", entry.path, entry.path.find(' ') == std::string::npos ? "*" : "");
    for (const OptionSpec& spec : entry.options) {
      for (const std::string& name : spec.names) {
        if (!spec.positional) cases += fmt::format("        '*{}[{}]{}' \\\n", name, quoted(spec.help, "[]:"), zsh_value(spec));
      }
    }
    cases += "        '*:file:_files'\n      ;;\n";
  }
  std::string groups;
  for (const Command& c : all_commands()) {
    if (!c.subcommands.empty()) groups += fmt::format("    '{} '*) (( CURRENT == 3 )) && _describe command {}_commands ;;\n", c.name, c.name);
  }
  return fmt::format(R"(#compdef tandem
# zsh completion for tandem: tandem completion zsh > "${{fpath[1]}}/_tandem"
_tandem() {{
  local -a commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case "$words[2] $words[3]" in
{}{}  esac
}}
_tandem "$@"
)",
                     commands, cases, groups);
}

std::string fish_option(const std::string& condition, const OptionSpec& spec) {
  std::string line = fmt::format("complete -c tandem -n '{}'", condition);
  for (const std::string& name : spec.names) line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!spec.choices.empty()) line += fmt::format(" -x -a '{}'", fmt::join(spec.choices, " "));
  if (spec.choices.empty() && !spec.flag) line += " -r";
  return line + fmt::format(" -d '{}'\n", quoted(spec.help, ""));
}

std::string fish_script() {
  std::string text = "# fish completion for tandem: tandem completion fish > ~/.config/fish/completions/tandem.fish\n";
  for (const auto& [word, summary] : first_words()) {
    text += fmt::format("complete -c tandem -n __fish_use_subcommand -x -a {} -d '{}'\n", word, quoted(summary, ""));
  }
  for (const Entry& entry : entries()) {
    std::string condition = "__fish_seen_subcommand_from " + entry.path;
    if (const std::size_t space = entry.path.find(' '); space != std::string::npos) {
      const std::string group = entry.path.substr(0, space), name = entry.path.substr(space + 1);
      text += fmt::format("complete -c tandem -n '__fish_seen_subcommand_from {}' -a {} -d '{}'\n", group, name, quoted(entry.summary, ""));
      condition = fmt::format("__fish_seen_subcommand_from {}; and __fish_seen_subcommand_from {}", group, name);
    }
    for (const OptionSpec& spec : entry.options) {
      if (!spec.positional) text += fish_option(condition, spec);
    }
  }
  return text;
}

}  // namespace

Command completion_command() {
  auto shell = std::make_shared<std::string>();
  return {.name = "completion",
          .summary = "Prints a completion script for a shell.",
          .example =
              "source <(tandem completion bash)\ntandem completion zsh > \"${fpath[1]}/_tandem\"\n"
              "tandem completion fish > ~/.config/fish/completions/tandem.fish",
          .declare =
              [shell](OptionSet& options) {
                options.positional("SHELL", *shell, "bash, zsh or fish").choices = {"bash", "zsh", "fish"};
              },
          .run =
              [shell](const Console&) {
                if (*shell != "bash" && *shell != "zsh" && *shell != "fish") {
                  throw UsageError(fmt::format("argument SHELL: expected one of bash, zsh, fish, found \"{}\"", *shell));
                }
                print(*shell == "bash" ? bash_script() : *shell == "zsh" ? zsh_script() : fish_script());
                return 0;
              },
          .subcommands = {}};
}

}  // namespace tandem::cli
