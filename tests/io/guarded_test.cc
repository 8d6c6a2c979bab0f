#include "io/guarded.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "runtime/base/error.h"

namespace tandem::io {
namespace {

TEST(Guarded, PassesErrorsOn) {
  run_guarded("x", 4, 1 << 28, [] {});
  EXPECT_THROW(run_guarded("x", 4, 1 << 28, [] { throw Unsupported("no"); }), Unsupported);
  EXPECT_THROW(run_guarded("x", 4, 1 << 28, [] { throw InvalidData("no"); }), InvalidData);
  try {
    run_guarded("x", 4, 1 << 28, [] { throw InvalidModel(std::string(100000, 'm')); });
    FAIL();
  } catch (const InvalidModel& e) {
    EXPECT_EQ(e.message().size(), 100000u);
  }
}

TEST(Guarded, ACrashOrAHangIsADamagedFile) {
  EXPECT_THROW(run_guarded("x", 4, 1 << 28, [] { ::raise(SIGKILL); }), InvalidModel);
  EXPECT_THROW(run_guarded("x", 4, 1 << 28, [] { ::_exit(0); }), InvalidModel);
  EXPECT_THROW(run_guarded("x", 1, 1 << 28,
                           [] {
                             for (;;) ::pause();
                           }),
               InvalidModel);
}

}  // namespace
}  // namespace tandem::io
