#include "runtime/base/safe_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/base/error.h"
#include "tests/support/files.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

TEST(SafeFile, AppearsWholeOrNotAtAll) {
  const TemporaryFolder folder;
  folder.write("f", "old");
  {
    SafeFile file(folder / "f");
    file.write("ne");
    EXPECT_EQ(read_text(folder / "f"), "old");
  }
  EXPECT_EQ(read_text(folder / "f"), "old");
  EXPECT_EQ(folder.files(), 1u);
  save_file(folder / "f", std::string_view("new"));
  EXPECT_EQ(read_text(folder / "f"), "new");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(SafeFile, WhatAKilledSaveLeftGoesWithTheNextOfTheSameName) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    SafeFile file(folder / "f");
    SafeFile other(folder / "g");
    file.write("half");
    _exit(0);  // no destructor, as a kill
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(folder.files(), 2u);
  SafeFile living(folder / "f");
  save_file(folder / "f", std::string_view("x"));
  EXPECT_EQ(folder.files(), 3u);  // f, the living one's, and g's
  living.write("y");
  living.commit();
  EXPECT_EQ(read_text(folder / "f"), "y");
  EXPECT_EQ(folder.files(), 2u);
}

TEST(SafeFile, OnlyTemporaryFilesOfThisTargetAreTaken) {
  const TemporaryFolder folder;
  const std::string far = "2147483000";  // no process has it
  for (const char* end : {"-x", "", "-0-1"}) folder.write(".f.tandem-" + far + end, "somebody's");
  for (const char* name : {".f.tandem--1", ".ff.tandem-2147483000-0", ".f.tandem-x-0"}) folder.write(name, "somebody's");
  folder.write(".f.tandem-" + far + "-7", "left over");
  const std::size_t before = folder.files();
  save_file(folder / "f", std::string_view("x"));
  EXPECT_EQ(folder.files(), before);  // f for the one that went
  EXPECT_EQ(read_text(folder / (".f.tandem-" + far + "-7")), "");
}

TEST(SafeFile, NamesMayBeAsLongAsTheSystemTakes) {
  const TemporaryFolder folder;
  const std::string a(255, 'a'), b = a.substr(1) + "b";  // the beginnings that temporary names take of them are the same
  SafeFile open(folder / a);
  save_file(folder / b, std::string_view("b"));
  open.write("a");
  open.commit();
  EXPECT_EQ(read_text(folder / a), "a");
  EXPECT_EQ(read_text(folder / b), "b");
  EXPECT_EQ(folder.files(), 2u);
}

TEST(SafeFile, ALinkIsReplacedAndItsTargetKept) {
  const TemporaryFolder folder;
  folder.write("victim", "safe");
  fs::create_symlink("victim", folder / "link");
  fs::create_hard_link(folder / "victim", folder / "hard");
  save_file(folder / "link", std::string_view("a"));
  save_file(folder / "hard", std::string_view("b"));
  EXPECT_EQ(read_text(folder / "victim"), "safe");
  EXPECT_FALSE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_text(folder / "hard"), "b");
}

TEST(SafeFile, FoldersAreRefused) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "d");
  for (const char* name : {"d", "d/", "d/.", "d/..", "", "no/f"})
    EXPECT_THROW(save_file(std::string(name).empty() ? "" : folder / name, std::string_view("x")), InvalidData) << name;
  EXPECT_EQ(folder.files(), 1u);
}

}  // namespace
}  // namespace tandem::test
