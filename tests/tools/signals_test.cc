// A file that becomes shorter while its pages are read: an error and an exit code instead of a signal.
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

}  // namespace
}  // namespace tandem::test
