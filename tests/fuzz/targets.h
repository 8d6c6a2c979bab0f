// What is fuzzed: each format's reader, and for networks planning and a run.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/mutator.h"

namespace tandem::fuzz {

struct Target {
  std::string format;
  std::vector<std::string> seed_extensions;  // of files under tests/data
  // Reads the bytes; true: accepted, false: refused by one of tandem's own exceptions. Anything else that leaves it is a fault.
  bool (*accepts)(const Bytes&);
};

const std::vector<Target>& targets();

// The seeds of a target, in the order of their paths. Files of more than 64 KiB are left out.
std::vector<Bytes> seeds_of(const Target&, const std::string& data_folder);

}  // namespace tandem::fuzz
