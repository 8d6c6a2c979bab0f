// Random problems of the window, matrix and normalisation operators against plain double precision.
// One problem alone: TANDEM_PROBLEM=1234 test_ops --gtest_filter=Differential.*
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/problems.h"

namespace tandem::test {
namespace {

constexpr int kProblems = 5000;
constexpr int kMostFailures = 20;  // the rest of a broken kernel's failures tell nothing new

TEST(Differential, RandomProblemsAgreeWithDoublePrecision) {
  int first = 0, last = kProblems;
  if (const char* one = std::getenv("TANDEM_PROBLEM")) {
    first = std::atoi(one);
    last = first + 1;
  }
  int failures = 0;
  for (int i = first; i < last && failures < kMostFailures; ++i) {
    const Problem problem = make_problem(i);
    if (last - first == 1) std::printf("%s\n", problem.line.c_str());
    const std::string failure = failure_of(problem);
    if (failure.empty()) continue;
    ++failures;
    ADD_FAILURE() << failure;
  }
}

}  // namespace
}  // namespace tandem::test
