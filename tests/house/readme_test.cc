// The README names what tandem needs, and its commands are there.
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>
#include <string>

#include "tests/house/source_tree.h"

namespace tandem::test {
namespace {

// The lines of the array `packages=( ... )` in tools/setup.sh.
std::vector<std::string> packages() {
  std::istringstream script(source_text("tools/setup.sh"));
  std::vector<std::string> found;
  bool inside = false;
  for (std::string line; std::getline(script, line);) {
    if (line == "packages=(") {
      inside = true;
    } else if (line == ")") {
      inside = false;
    } else if (inside && line.find('#') == std::string::npos) {
      std::istringstream words(line);
      for (std::string word; words >> word;) found.push_back(word);
    }
  }
  return found;
}

TEST(Readme, NamesEveryDependency) {
  const std::string readme = source_text("README.md");
  ASSERT_GT(packages().size(), 10u);
  for (const std::string& package : packages()) {
    EXPECT_NE(readme.find("`" + package + "`"), std::string::npos) << package << " has no line in the README's table";
  }
}

TEST(Readme, ItsCommandsExist) {
  const std::string readme = source_text("README.md");
  for (const std::string script : {"tools/demo.sh", "tools/test.sh"}) {
    EXPECT_NE(readme.find(script), std::string::npos) << script;
    EXPECT_EQ(access((std::string(TANDEM_SOURCE_DIR "/") + script).c_str(), X_OK), 0) << script << " is not there or not executable";
  }
}

}  // namespace
}  // namespace tandem::test
