// Every operator of the table has a test that names it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "runtime/ops/op_table.h"
#include "tests/house/source_tree.h"

namespace tandem::test {
namespace {

bool names(const SourceFile& file, const std::string& literal) {
  for (const std::string& line : file.lines) {
    if (line.find(literal) != std::string::npos) return true;
  }
  return false;
}

TEST(Operators, EachHasATestThatNamesIt) {
  for (const OpDef* op : all_ops()) {
    const std::string literal = "\"" + std::string(op->name) + "\"";
    bool tested = false;
    for (const SourceFile& file : source_files()) tested = tested || (file.path.starts_with("tests/ops/") && names(file, literal));
    EXPECT_TRUE(tested) << "no file in tests/ops/ names " << literal;
  }
}

// Protobuf's headers include <iostream>, which makes one (std::ios_base::Init) in every file that uses them: importer/ alone.
bool of_protobuf(const std::string& symbol) {
  for (const SourceFile& file : source_files()) {
    if (file.path.starts_with("importer/") && symbol.ends_with("_GLOBAL__sub_I_" + file.path.substr(file.path.rfind('/') + 1))) return true;
  }
  return false;
}

// Static constructors would be registration in disguise, and run before main in an order nobody chose.
TEST(Operators, NothingRunsBeforeMain) {
  if (*TANDEM_SANITIZE) return;  // the sanitizers add constructors of their own
  const std::string out = testing::TempDir() + "tandem_static_constructors.txt";
  const std::string command = "nm '" TANDEM_LIBRARY "' > '" + out + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  std::ifstream symbols(out);
  std::size_t count = 0;
  for (std::string line; std::getline(symbols, line); ++count) {
    EXPECT_TRUE(line.find("_GLOBAL__sub_I_") == std::string::npos || of_protobuf(line)) << "static constructor in " << line;
  }
  EXPECT_GT(count, 0u);
}

}  // namespace
}  // namespace tandem::test
