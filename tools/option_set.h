// The options of one command as data: the parser fills them in, --help, completion and the configuration file read the same list.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::cli {

struct OptionSpec {
  std::vector<std::string> names;  // "--batch-size", "--batch", "-b"; a positional has one name without dashes
  std::string metavar;             // what the value is called in the help; empty for flags
  std::string help;
  std::string default_text;  // shown by --help; empty: nothing to show
  std::string group;         // heading in the help
  std::vector<std::string> choices;
  bool flag = false, positional = false, required = false;
  bool repeatable = false;  // an option that may be given several times; a positional that takes all that is left
  // Takes the values of the strongest source. Throws UsageError.
  std::function<void(const std::vector<std::string>&)> assign;
  // The bound variable as a configuration file has it; empty where it holds nothing that the option could be given.
  std::function<std::string()> value;

  // Name without dashes of the first long name: "batch-size". The key in a configuration file; the environment's is TANDEM_BATCH_SIZE.
  std::string key() const;
  std::string variable() const;
};

// Each adder binds a variable that keeps its value when no source sets the option; the value at the time of the call is the default in
// the help. `names` is a comma-separated list, the first long one names the option. References must outlive the parse.
class OptionSet {
 public:
  // Heading of the options that follow.
  void group(std::string title) { group_ = std::move(title); }

  OptionSpec& positional(std::string name, std::string& value, std::string help);
  OptionSpec& positionals(std::string name, std::vector<std::string>& values, std::string help);
  OptionSpec& flag(const std::string& names, bool& value, std::string help);
  OptionSpec& text(const std::string& names, std::string metavar, std::string& value, std::string help);
  OptionSpec& texts(const std::string& names, std::string metavar, std::vector<std::string>& values, std::string help);
  OptionSpec& integer(const std::string& names, std::string metavar, std::int64_t& value, std::int64_t min, std::int64_t max, std::string help);
  OptionSpec& number(const std::string& names, std::string metavar, double& value, double min, double max, std::string help);
  OptionSpec& choice(const std::string& names, std::vector<std::string> choices, std::string& value, std::string help);
  // Anything else: `parse` is given the text and throws UsageError naming what was expected; OptionSpec::value is the caller's.
  OptionSpec& custom(const std::string& names, std::string metavar, std::string default_text, std::function<void(const std::string&)> parse,
                     std::string help);

  const std::vector<OptionSpec>& specs() const { return specs_; }

 private:
  OptionSpec& add(OptionSpec spec);
  std::vector<OptionSpec> specs_;
  std::string group_ = "Options";
};

// A string of a configuration file: "text"; empty for an empty one.
std::string toml_text(const std::string& text);

// The parts of text between any of the separators, empty ones too.
std::vector<std::string> split(const std::string& text, const char* separators = ",");
// "expected an integer from 1 to 8, found \"x\"": throws UsageError unless the whole text is one in [min, max].
std::int64_t to_integer(const std::string& text, std::int64_t min, std::int64_t max);
double to_number(const std::string& text, double min, double max);
// 1/true/on/yes or 0/false/off/no.
bool to_bool(const std::string& text);
// The nearest of `candidates` to `text` when it looks like a slip of the keyboard (at most a third of it wrong).
std::optional<std::string> nearest(const std::string& text, const std::vector<std::string>& candidates);

}  // namespace tandem::cli
