// What signals ask of a run, and a file that becomes shorter while its pages are read: an error and an exit code instead of a signal.
#include "tools/signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <limits>

#include "importer/mapped_file.h"
#include "tests/support/files.h"

namespace tandem::test {
namespace {

[[noreturn]] void read_what_is_gone(const std::string& file) {
  cli::report_bus_errors();
  const auto mapped = MappedFile::open(file, std::numeric_limits<std::int64_t>::max());
  std::filesystem::resize_file(file, 1);
  const volatile std::byte* bytes = mapped->bytes().data();
  std::exit(bytes[mapped->bytes().size() - 1] == std::byte{'a'} ? 0 : 1);
}

TEST(BusErrorDeathTest, AFileThatIsCutWhileItIsReadIsAnErrorOfTheModel) {
  const TemporaryFolder folder;
  const std::string file = folder.write("w.bin", std::string(1 << 20, 'a'));
  EXPECT_EXIT(read_what_is_gone(file), testing::ExitedWithCode(3), "tandem: error: a file .* was made shorter while it was read");
}

TEST(BusErrorDeathTest, OtherBusErrorsStayWhatTheyAre) {
  EXPECT_EXIT(
      {
        cli::report_bus_errors();
        std::raise(SIGBUS);
        std::raise(SIGBUS);
        std::exit(0);
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST(SignalWatchDeathTest, TheSecondStopEndsTheProcess) {
  for (const int second : {SIGINT, SIGTERM}) {
    EXPECT_EXIT(
        {
          const cli::SignalWatch watch;
          std::raise(SIGTERM);
          std::raise(second);
          std::exit(0);
        },
        testing::ExitedWithCode(128 + second), "");
  }
}

TEST(SignalWatch, OneAsksToStopOrToSave) {
  const cli::SignalWatch watch;
  EXPECT_EQ(watch.stop_signal(), 0);
  std::raise(SIGHUP);
  EXPECT_EQ(watch.stop_signal(), 0);
  EXPECT_TRUE(watch.take_save());
  EXPECT_FALSE(watch.take_save());
  std::raise(SIGUSR1);
  std::raise(SIGUSR1);  // a batch system may repeat it
  EXPECT_EQ(watch.stop_signal(), SIGUSR1);
}

}  // namespace
}  // namespace tandem::test
