// The log of training steps, and folders and files that only one run may have.
#include "tools/step_log.h"

#include <gtest/gtest.h>

#include <optional>

#include "runtime/base/error.h"
#include "tests/support/files.h"
#include "tools/run_folder.h"

namespace tandem::test {
namespace {

using cli::RunFolder;
using cli::StepLog;

TEST(StepLog, ARunThatGoesOnCutsWhatLiesBehindItsCheckpoint) {
  const TemporaryFolder folder;
  const std::string two = "{\"step\":0,\"loss\":1}\n{\"step\":1,\"loss\":2}\n", third = "{\"step\":2,\"loss\":3}\n";
  struct Case {
    std::string there;
    std::int64_t next;
    std::string kept;
  };
  const std::vector<Case> cases = {
      {two + third, 2, two},   {two + third, 3, two + third},        {two + third, 0, ""}, {two + "{\"step\":2,\"lo", 3, two},
      {two + "[3]\n", 3, two}, {two + "{\"step\":\"2\"}\n", 3, two}, {two + "\n", 3, two}, {"", 2, ""}};
  for (const Case& c : cases) {
    const std::string file = folder.write("log.jsonl", c.there);
    StepLog(file, c.next).add(third);
    EXPECT_EQ(read_text(file), c.kept + third) << c.there << c.next;
  }
}

TEST(StepLog, OneRunWritesIt) {
  const TemporaryFolder folder;
  std::optional<StepLog> first(std::in_place, folder / "log.jsonl", 0);
  first->add("{\"step\":0}\n");
  EXPECT_THROW(StepLog(folder / "log.jsonl", 0), InvalidData);
  EXPECT_EQ(read_text(folder / "log.jsonl"), "{\"step\":0}\n");
  first.reset();
  EXPECT_NO_THROW(StepLog(folder / "log.jsonl", 0));
  EXPECT_THROW(StepLog(folder / "none/log.jsonl", 0), InvalidData);
  EXPECT_NO_THROW(StepLog("/dev/null", 0).add("x\n"));
  EXPECT_THROW(StepLog("/dev/full", 0).add("x\n"), InvalidData);
}

TEST(RunFolder, OneRunWritesIntoIt) {
  const TemporaryFolder folder;
  std::optional<RunFolder> first(std::in_place, folder / "run", "net", false);
  first->write_text("args.toml", "x = 1\n");
  for (const bool goes_on : {false, true}) {
    try {
      const RunFolder second(folder / "run", "net", goes_on);
      ADD_FAILURE() << "two runs in one folder";
    } catch (const InvalidData& e) {
      EXPECT_NE(std::string(e.what()).find("another run is writing into folder"), std::string::npos) << e.what();
    }
  }
  first.reset();
  EXPECT_NO_THROW(RunFolder(folder / "run", "net", true));
}

}  // namespace
}  // namespace tandem::test
