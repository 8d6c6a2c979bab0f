// The help texts, made from the same data as the parser.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "tools/command_line.h"

namespace tandem::cli {
namespace {

constexpr std::size_t kTextColumn = 28;

std::string left_side(const OptionSpec& spec) {
  if (spec.positional) return spec.names.front() + (spec.repeatable ? "..." : "");
  std::string text = fmt::format("{}", fmt::join(spec.names, ", "));
  return spec.metavar.empty() ? text : text + " " + spec.metavar;
}

std::string row(const std::string& left, const std::string& text, std::size_t columns) {
  const std::string wrapped = wrap(text, kTextColumn, columns);
  if (left.size() + 4 > kTextColumn) return fmt::format("  {}\n{:{}}{}\n", left, "", kTextColumn, wrapped);
  return fmt::format("  {:{}}{}\n", left, kTextColumn - 2, wrapped);
}

std::string describe_option(const OptionSpec& spec) {
  std::string text = spec.help;
  if (spec.required && !spec.positional) text += " (required)";
  if (!spec.default_text.empty()) text += fmt::format(" (default: {})", spec.default_text);
  return text;
}

std::string indented(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) out += "  " + line + "\n";
  return out;
}

std::string usage_line(const std::string& path, const OptionSet& options) {
  std::string line = "Usage: tandem " + path;
  for (const OptionSpec& spec : options.specs()) {
    if (!spec.positional) continue;
    const std::string name = left_side(spec);
    line += spec.required ? " " + name : " [" + name + "]";
  }
  for (const OptionSpec& spec : options.specs()) {
    if (!spec.positional && spec.required) line += fmt::format(" --{} {}", spec.key(), spec.metavar);
  }
  return line + " [options]\n";
}

}  // namespace

std::string program_help(const std::vector<Command>& commands, std::size_t columns) {
  std::string text =
      "Usage: tandem COMMAND [options]\n\n" +
      wrap("Imports exported ONNX networks, predicts with them and fine-tunes them on one or several devices, and exchanges weights with Keras.", 0,
           columns) +
      "\n\nCommands:\n";
  for (const Command& c : commands) {
    std::string name = c.name;
    std::vector<std::string> subs;
    for (const Command& sub : c.subcommands) subs.push_back(sub.name);
    if (!subs.empty()) name += fmt::format(" {}", fmt::join(subs, "|"));
    text += row(name, c.summary, columns);
  }
  text += "\nOptions:\n";
  text += row("--quiet, -q", "warnings and errors only", columns);
  text += row("--verbose, -v", "say more", columns);
  text += row("--version", "version of the program and of the libraries it stands on", columns);
  text += row("--help, -h", "show this; after a command, its options", columns);
  text += "\n" +
          wrap(
              "Every option can stand in the environment too (--batch-size as TANDEM_BATCH_SIZE) or in the TOML file given by --config; the command "
              "line wins, then the environment, then the file.",
              0, columns) +
          "\n\nExample:\n  tandem predict model.onnx photos/ --out result.csv\n  tandem train model.onnx photos/ --epochs 5\n";
  return text;
}

std::string command_help(const std::string& path, const Command& command, std::size_t columns) {
  if (!command.subcommands.empty()) {
    std::string text = fmt::format("Usage: tandem {} COMMAND [options]\n\n{}\n\nCommands:\n", path, wrap(command.summary, 0, columns));
    for (const Command& sub : command.subcommands) text += row(sub.name, sub.summary, columns);
    return text + fmt::format("\n\"tandem {} COMMAND --help\" tells more.\n\nExample:\n", path) + indented(command.example);
  }
  CommonOptions common;
  const OptionSet options = options_of(command, common);
  std::string text = usage_line(path, options) + "\n" + wrap(command.summary, 0, columns) + "\n";
  bool first = true;
  for (const OptionSpec& spec : options.specs()) {
    if (!spec.positional) continue;
    if (std::exchange(first, false)) text += "\nArguments:\n";
    text += row(left_side(spec), describe_option(spec), columns);
  }
  std::string group;
  for (const OptionSpec& spec : options.specs()) {
    if (spec.positional) continue;
    if (spec.group != group) text += fmt::format("\n{}:\n", spec.group);
    group = spec.group;
    text += row(left_side(spec), describe_option(spec), columns);
  }
  return text + "\nExample:\n" + indented(command.example);
}

}  // namespace tandem::cli
