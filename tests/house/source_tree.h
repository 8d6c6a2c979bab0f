// The project's own files as text, for the tests of the house.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem::test {

struct SourceFile {
  std::string path;    // relative to the root: "runtime/ops/conv.cc"
  std::string folder;  // its first part: "runtime"
  std::vector<std::string> lines;
  bool is_header() const { return path.ends_with(".h") || path.ends_with(".cuh"); }
  // path:line, for messages; `index` counts from 0.
  std::string at(std::size_t index) const { return path + ":" + std::to_string(index + 1); }
};

// The text of a file below the root; throws std::runtime_error when it cannot be read.
std::string source_text(const std::string& path);
// Every .cc, .h, .cu and .cuh below the project's folders, sorted by path.
const std::vector<SourceFile>& source_files();
// Folders whose code ships: all of source_files() but tests/.
bool is_product(const SourceFile&);

// The line without comments that start on it, and with the contents of string and character literals removed. Every source of the
// project writes // comments; a /* */ within one line is handled, one over several lines is not used.
std::string code_of(std::string_view line);

// `#include "a/b.h"` or `#include <a/b.h>`: the name between the marks and whether they were quotes; empty when the line is none.
struct Include {
  std::string name;
  bool quoted = false;
};
Include include_of(std::string_view line);

}  // namespace tandem::test
