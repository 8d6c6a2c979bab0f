// The words of a command line and the configuration file, read with CLI11.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iterator>

#include "runtime/base/error.h"
#include "tools/command_line.h"

namespace tandem::cli {
namespace {

std::vector<std::string> long_names(const OptionSet& options) {
  std::vector<std::string> names;
  for (const OptionSpec& spec : options.specs()) {
    if (!spec.positional) names.insert(names.end(), spec.names.begin(), spec.names.end());
  }
  return names;
}

CLI::Option* add(CLI::App& app, const OptionSpec& spec) {
  const std::string names = CLI::detail::join(spec.names, ",");
  CLI::Option* option = spec.flag ? app.add_flag(names) : app.add_option(names, CLI::callback_t([](const CLI::results_t&) { return true; }));
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  // Without extra arguments CLI11 also leaves values in brackets alone ("[a]" is a file name, not a list).
  return spec.flag ? option : option->expected(1)->allow_extra_args(false);
}

[[noreturn]] void refuse_option(const std::string& word, const OptionSet& options) {
  const std::string name = word.substr(0, word.find('='));
  const auto close = nearest(name, long_names(options));
  throw UsageError(fmt::format("unknown option {}{}", name, close ? fmt::format("; did you mean {}?", *close) : ""));
}

// Words that are no options, in order, to the positionals. CLI11 is not asked: it would split words in brackets here.
void place_positionals(const OptionSet& options, const std::vector<std::string>& words, GivenValues& given) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < options.specs().size() && next < words.size(); ++i) {
    const OptionSpec& spec = options.specs()[i];
    if (!spec.positional) continue;
    const std::size_t count = spec.repeatable ? words.size() - next : 1;
    given[i].assign(words.begin() + static_cast<std::ptrdiff_t>(next), words.begin() + static_cast<std::ptrdiff_t>(next + count));
    next += count;
  }
  if (next < words.size()) throw UsageError(fmt::format("unexpected argument \"{}\"", words[next]));
}

}  // namespace

GivenValues parse_words(const OptionSet& options, const std::vector<std::string>& words) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::map<std::size_t, CLI::Option*> added;
  for (std::size_t i = 0; i < options.specs().size(); ++i) {
    if (!options.specs()[i].positional) added[i] = add(app, options.specs()[i]);
  }
  const auto mark = std::find(words.begin(), words.end(), "--");
  try {
    app.parse(std::vector<std::string>(std::make_reverse_iterator(mark), words.rend()));
  } catch (const CLI::ParseError& e) {
    throw UsageError(e.what());
  }
  std::vector<std::string> rest = app.remaining();
  for (const std::string& word : rest) {
    if (word.size() > 1 && word[0] == '-') refuse_option(word, options);
  }
  if (mark != words.end()) rest.insert(rest.end(), mark + 1, words.end());
  GivenValues given;
  for (const auto& [i, option] : added) {
    if (option->count() > 0) given[i] = option->results();
  }
  place_positionals(options, rest, given);
  return given;
}

std::vector<ConfigEntry> read_config(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw UsageError(fmt::format("cannot read the configuration file \"{}\"", path));
  std::vector<CLI::ConfigItem> items;
  try {
    items = CLI::ConfigTOML().from_config(file);
  } catch (const std::exception& e) {
    throw UsageError(fmt::format("configuration file \"{}\" is not TOML: {}", path, e.what()));
  }
  std::vector<ConfigEntry> entries;
  for (const CLI::ConfigItem& item : items) {
    if (item.name == "++" || item.name == "--") continue;  // CLI11's marks where a section begins and ends
    ConfigEntry entry{CLI::detail::join(item.parents, "."), item.name, item.inputs};
    std::replace(entry.key.begin(), entry.key.end(), '_', '-');
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace tandem::cli
