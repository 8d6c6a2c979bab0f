// Networks of real exporters with their frameworks' answers (tests/data/fixtures/README.md).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/tandem.h"

namespace tandem::test {

struct Fixture {
  std::string name;
  std::filesystem::path folder;
  double rtol = 0, atol = 0;
  std::string reject;     // what the refusal must name, in words; "": must run
  bool training = false;  // exported in training mode
};

// The fixtures that lie in the source tree.
std::filesystem::path fixtures_folder();
// Those of a folder with a manifest.json, in its order. Throws std::exception for a manifest that cannot be read.
std::vector<Fixture> read_fixtures(const std::filesystem::path& folder);

// Passes on and off, on one device and on three: a network must give the same answers in all of them. `say` describes one for messages.
std::vector<RunOptions> all_settings();
std::string say(const RunOptions&);

}  // namespace tandem::test
