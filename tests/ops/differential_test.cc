// Random problems of the window, matrix and normalisation operators against plain double precision.
// One problem alone: TANDEM_PROBLEM=1234 test_ops --gtest_filter=Differential.InFloat32 (or InBfloat16, InThreeParts)
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/problems.h"

namespace tandem::test {
namespace {

// Scalar kernels, and tiles in software more so, cost a sanitizer build minutes: it takes a part of the problems.
#if defined(__SANITIZE_ADDRESS__)
constexpr int kPart = 10, kPartOfF32 = 4;
#else
constexpr int kPart = 1, kPartOfF32 = 1;
#endif

constexpr int kMostFailures = 20;  // the rest of a broken kernel's failures tell nothing new

void check(Precision precision, int problems) {
  int first = 0, last = problems;
  if (const char* one = std::getenv("TANDEM_PROBLEM")) {
    first = std::atoi(one);
    last = first + 1;
  }
  int failures = 0;
  for (int i = first; i < last && failures < kMostFailures; ++i) {
    const Problem problem = make_problem(i, precision);
    if (last - first == 1) std::printf("%s\n", problem.line.c_str());
    const std::string failure = failure_of(problem);
    if (failure.empty()) continue;
    ++failures;
    ADD_FAILURE() << failure;
  }
}

TEST(Differential, InFloat32) { check(Precision::kF32, 5000 / kPartOfF32); }
// Operands that are bf16 numbers, sums in f32, results stored as bf16 or f32; half of them on tiles in software.
TEST(Differential, InBfloat16) { check(Precision::kBF16, 2000 / kPart); }
// The f32 network's products from three bf16 parts on tiles in software, as near to double precision as f32's own.
TEST(Differential, InThreeParts) { check(Precision::kBF16x3, 500 / kPart); }

}  // namespace
}  // namespace tandem::test
