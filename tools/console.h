// What the program says besides results: the log on stderr, and how wide and colourful the terminal may be. Results go to stdout by
// print(). One object, made in main() from the environment and handed on.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::cli {

// Value of an environment variable; nothing when it is not set. Main gives the real one, tests a map.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();

class Console {
 public:
  // Looks at NO_COLOR, CLICOLOR_FORCE, TERM, COLUMNS and whether stdout and stderr are terminals.
  static Console detect(const Environment&);

  bool quiet = false;    // -q: warnings and errors only
  bool verbose = false;  // -v
  bool colour = false;   // stderr may be coloured
  bool live = false;     // stderr is a terminal: lines may be written over
  std::size_t columns = 80;

  // Lines of the log. info() is silent under -q, detail() without -v.
  void info(std::string_view text) const;
  void detail(std::string_view text) const;
  void warn(std::string_view text) const;
  // A line that shows how far something is: written over the one before where `live`; `last` ends it. Silent under -q.
  void progress(std::string_view text, bool last) const;
  // Keras' bar for a share of the work.
  std::string bar(double share) const;
  // "tandem: error: " and the text, in at most five lines.
  void error(std::string_view text) const;
};

// Writes a result to stdout.
void print(std::string_view text);
// Throws std::runtime_error naming the reason when something printed could not be written (a full disk, a closed pipe).
void finish_output();

// Text as it may stand on a terminal: control characters but newline and tab become \xNN, lines are cut after `limit` bytes.
std::string printable(std::string_view text, std::size_t limit = 1000);
// Breaks text at spaces so that no line is longer than `columns` (longer words stay whole); the second and later lines start with `indent`
// spaces. The first line is taken to start at column `indent` too.
std::string wrap(std::string_view text, std::size_t indent, std::size_t columns);

}  // namespace tandem::cli
