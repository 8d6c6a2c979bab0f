#include "tests/house/source_tree.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

SourceFile load(const fs::path& root, const fs::path& path) {
  SourceFile file;
  file.path = fs::relative(path, root).generic_string();
  file.folder = file.path.substr(0, file.path.find('/'));
  std::istringstream text(source_text(file.path));
  for (std::string line; std::getline(text, line);) file.lines.push_back(line);
  return file;
}

// Past the literal that starts at `i` (a quote character); `i` ends on its closing quote.
void skip_literal(std::string_view line, std::size_t& i) {
  const char quote = line[i];
  for (++i; i < line.size() && line[i] != quote; ++i) {
    if (line[i] == '\\') ++i;
  }
}

}  // namespace

std::string source_text(const std::string& path) {
  std::ifstream in(fs::path(TANDEM_SOURCE_DIR) / path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

const std::vector<SourceFile>& source_files() {
  static const std::vector<SourceFile> files = [] {
    std::vector<SourceFile> found;
    const fs::path root = TANDEM_SOURCE_DIR;
    for (const char* folder : {"examples", "importer", "io", "models", "parallel", "runtime", "tests", "tools"}) {
      for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
        const std::string extension = entry.path().extension();
        if (entry.is_regular_file() && (extension == ".cc" || extension == ".h" || extension == ".cu" || extension == ".cuh")) {
          found.push_back(load(root, entry.path()));
        }
      }
    }
    std::sort(found.begin(), found.end(), [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
    return found;
  }();
  return files;
}

bool is_product(const SourceFile& file) { return file.folder != "tests"; }

std::string code_of(std::string_view line) {
  std::string code;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line.substr(i, 2) == "//") break;
    if (line.substr(i, 2) == "/*") {
      const std::size_t end = line.find("*/", i + 2);
      if (end == std::string_view::npos) break;
      i = end + 1;
    } else if (line[i] == '"') {
      skip_literal(line, i);
      code += "\"\"";
    } else if (line[i] == '\'' && (code.empty() || !std::isalnum(static_cast<unsigned char>(code.back())))) {  // not 1'000
      skip_literal(line, i);
      code += "''";
    } else {
      code += line[i];
    }
  }
  return code;
}

Include include_of(std::string_view line) {
  constexpr std::string_view kWord = "#include";
  if (!line.starts_with(kWord)) return {};
  const std::size_t open = line.find_first_of("\"<", kWord.size());
  if (open == std::string_view::npos) return {};
  const char close = line[open] == '"' ? '"' : '>';
  const std::size_t end = line.find(close, open + 1);
  return {std::string(line.substr(open + 1, end - open - 1)), close == '"'};
}

}  // namespace tandem::test
