#include "runtime/base/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tandem {
namespace {

// kat_vectors of Random123, "philox4x32 10".
TEST(Philox, PublishedVectors) {
  EXPECT_EQ(philox(0, {0, 0, 0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~std::uint64_t{0}, {~0u, ~0u, ~0u, ~0u}), (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0'a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UnitFloatsLieBelowOne) {
  EXPECT_EQ(unit_float(0), 0.0f);
  EXPECT_EQ(unit_float(0x80000000), 0.5f);
  EXPECT_EQ(unit_float(~0u), 1.0f - 0x1p-24f);
}

TEST(PhiloxStream, WalksTheElementsOfItsPlace) {
  PhiloxStream s(7, 1, 2, 3);
  for (std::uint32_t element = 0; element < 3; ++element) {
    for (const std::uint32_t word : philox(7, {1, 2, 3, element})) EXPECT_EQ(s.next(), word);
  }
  PhiloxStream other(7, Purpose::kSplit, 2, 3);
  EXPECT_EQ(other.next(), philox(7, {0x80000001, 2, 3, 0})[0]);
}

TEST(PhiloxStream, IntegersAreEquallyLikely) {
  for (const std::uint32_t n : {1u, 2u, 3u, 10u}) {
    PhiloxStream s(n, 0, 0, 0);
    std::vector<int> seen(n, 0);
    constexpr int kDraws = 60000;
    for (int i = 0; i < kDraws; ++i) ++seen.at(s.below(n));
    for (const int count : seen) {  // six standard deviations
      const double mean = static_cast<double>(kDraws) / n;
      EXPECT_LT(std::abs(count - mean), 6 * std::sqrt(mean) + 1e-9) << n;
    }
  }
}

// With n = 3 * 2^30 a quarter of the words must be passed over, and each third of the range gets as many.
TEST(PhiloxStream, LargeRangesAreNotLopsided) {
  constexpr std::uint32_t kN = 3u << 30;
  PhiloxStream s(1, 0, 0, 0);
  std::vector<int> seen(3, 0);
  for (int i = 0; i < 30000; ++i) {
    const std::uint32_t v = s.below(kN);
    ASSERT_LT(v, kN);
    ++seen[v >> 30];
  }
  for (const int count : seen) EXPECT_NEAR(count, 10000, 500);
}

}  // namespace
}  // namespace tandem
