// FILE.state beside a prediction's result: what the run was begun with, and how far its files are vouched for. Internal to io; results.h uses it.
//
//   tandem results 2
//   "model" "7f3a..."                    a line for each setting, name and value as JSON strings
//   (an empty line)
//   6420 2c26b4... 113 fcde2b...         from time to time: bytes and SHA-256 of the rows, bytes and SHA-256 of the error list
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/appender.h"

namespace tandem::io {

using Settings = std::vector<std::pair<std::string, std::string>>;

// The parts of the two files that a state vouches for.
struct KeptBytes {
  std::uint64_t rows = 0, errors = 0;
};

class ResultState {
 public:
  // `result`: the file that the state belongs to, for messages. `seconds`: between two lines at least.
  ResultState(std::string file, std::string result, const Settings& settings, double seconds);

  void start();  // replaces what is there
  // How much of the texts an earlier run wrote: the longest recorded part that they are long enough for; nothing when none is. Throws UsageError when
  // there is no state, its settings are others (named), or that part is not what was written.
  std::optional<KeptBytes> check(std::string_view rows, std::string_view errors) const;
  void check_settings() const;
  void go_on(const KeptBytes& kept, std::string_view rows, std::string_view errors);
  // Records what the two hold (`errors` may be null), when `now` or the time since the last line is long enough. Both are flushed before.
  void record(Appender& rows, Appender* errors, bool now);

 private:
  std::string text() const;  // of the file as a user left it
  void replace(const std::string& line);

  std::string file_, result_, head_;
  std::chrono::duration<double> between_;
  std::chrono::steady_clock::time_point last_;
  std::unique_ptr<Appender> lines_;
};

}  // namespace tandem::io
