// What the house asks of every file: length, no device conditionals, no ambient state, no aborts.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/house/source_tree.h"

namespace tandem::test {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// `word` in `code`, not as a part of a longer name.
bool has_word(std::string_view code, std::string_view word) {
  const auto is_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (std::size_t at = code.find(word); at != std::string_view::npos; at = code.find(word, at + 1)) {
    const bool starts = at == 0 || !is_name(code[at - 1]);
    const bool ends = at + word.size() == code.size() || !is_name(code[at + word.size()]);
    if (starts && ends) return true;
  }
  return false;
}

TEST(Style, FilesStayShort) {
  for (const SourceFile& file : source_files()) {
    const std::size_t limit = file.is_header() ? 250 : 500;
    EXPECT_LE(file.lines.size(), limit) << file.path;
  }
}

// clang-format puts a function's last brace, alone, at the indentation of its first line. Found so: functions at column 0 and members at
// column 2 (namespaces do not indent).
std::vector<std::string> long_functions(const SourceFile& file, std::size_t limit) {
  std::vector<std::string> found;
  for (const std::size_t indent : {std::size_t{0}, std::size_t{2}}) {
    std::size_t start = file.lines.size();  // where the open construct began; the number of lines: none is open
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = code_of(file.lines[i]);
      if (code.find_first_not_of(' ') != indent) continue;
      const std::string_view body = std::string_view(code).substr(indent);
      if (body.starts_with("#") || body.starts_with("namespace")) continue;
      if (!body.starts_with("}")) {
        start = i;
      } else {
        if (start < i && !body.starts_with("};") && i - start + 1 > limit) {
          found.push_back(file.at(start) + ": " + std::to_string(i - start + 1) + " lines");
        }
        start = body.ends_with("{") ? i : file.lines.size();
      }
    }
  }
  return found;
}

TEST(Style, FunctionsStayShort) {
  for (const SourceFile& file : source_files()) {
    for (const std::string& f : long_functions(file, 100)) ADD_FAILURE() << f;
  }
}

TEST(Style, LongFunctionsAreFound) {
  SourceFile file{"a.cc", "a", {"namespace a {", "int f(int x,", "      int y) {"}};
  for (int i = 0; i < 98; ++i) file.lines.push_back("  x += y;");
  file.lines.push_back("}");
  file.lines.push_back("}  // namespace a");
  EXPECT_EQ(long_functions(file, 100), std::vector<std::string>{"a.cc:2: 101 lines"});
  EXPECT_TRUE(long_functions(file, 101).empty());
}

TEST(Style, HeadersArePragmaOnce) {
  for (const SourceFile& file : source_files()) {
    if (!file.is_header()) continue;
    std::size_t count = 0;
    for (const std::string& line : file.lines) count += line == "#pragma once";
    EXPECT_TRUE(count == 1 || file.path.ends_with("-inl.h")) << file.path;
  }
}

TEST(Style, SharedCodeKnowsNoDevice) {
  for (const SourceFile& file : source_files()) {
    if (file.path.starts_with("runtime/cuda/")) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      if (!line.starts_with("#") || !contains(line, "if")) continue;
      for (const char* word : {"CUDA", "NCCL", "CUDNN", "CUBLAS", "GPU", "__NVCC__", "HIP", "_MPI"}) {
        EXPECT_FALSE(contains(line, word)) << file.at(i) << ": " << line;
      }
    }
  }
}

TEST(Style, OnlyToolsReadTheEnvironmentOrExit) {
  for (const SourceFile& file : source_files()) {
    if (!is_product(file) || file.folder == "tools") continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = code_of(file.lines[i]);
      for (const char* word : {"getenv", "secure_getenv", "environ", "setenv", "abort", "exit", "_exit", "quick_exit", "terminate", "assert"}) {
        const bool forked = file.path == "io/guarded.cc" && std::string_view(word) == "_exit";  // the only way out of a forked child
        const bool called = !forked && contains(code, std::string(word) + "(") && has_word(code, word);
        EXPECT_FALSE(called) << file.at(i) << ": " << word;
      }
    }
  }
}

TEST(Style, NothingIsLeftUndone) {
  const std::string marks[] = {std::string("TO") + "DO", std::string("FIX") + "ME", std::string(", DISABLED") + "_"};
  for (const SourceFile& file : source_files()) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& mark : marks) EXPECT_FALSE(contains(file.lines[i], mark)) << file.at(i) << ": " << mark;
    }
  }
}

TEST(Style, CodeOfDropsCommentsAndLiterals) {
  EXPECT_EQ(code_of("int x = 1;  // exit("), "int x = 1;  ");
  EXPECT_EQ(code_of(R"(f("a // \" b", 'c', 1'000);)"), "f(\"\", '', 1'000);");
  EXPECT_EQ(code_of("f(/*x=*/1);"), "f(1);");
}

}  // namespace
}  // namespace tandem::test
