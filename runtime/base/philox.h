// Random numbers that belong to a place, not to a sequence: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011). A block of four words is a function of key and counter alone, so any thread, device or process draws the same.
//
// key = seed, counter = (purpose or ordinal of a node, step or epoch, index of the sample, element).
#pragma once

#include <array>
#include <cstdint>

namespace tandem {

using PhiloxBlock = std::array<std::uint32_t, 4>;

// First words of counters that belong to no node; ordinals of nodes lie below.
enum class Purpose : std::uint32_t {
  kShuffle = 0x8000'0000,  // (epoch, 0, element)
  kSplit = 0x8000'0001,    // (class, 0, element)
  kInitial = 0x8000'0002,  // new weights: (ordinal of the parameter, 0, element)
  kAugment = 0x8000'0100,  // and the 255 that follow, one for each kind: (epoch, data-set index, element)
};

// The ten rounds.
constexpr PhiloxBlock philox(std::uint64_t seed, PhiloxBlock counter) {
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0], b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ k1, static_cast<std::uint32_t>(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return counter;
}

// In [0, 1), a multiple of 2^-24.
constexpr float unit_float(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

// The draws of one place one after the other: the elements 0, 1, 2, ... of the counter, four words each.
class PhiloxStream {
 public:
  PhiloxStream(std::uint64_t seed, std::uint32_t first, std::uint32_t second, std::uint32_t third) : seed_(seed), counter_{first, second, third, 0} {}
  PhiloxStream(std::uint64_t seed, Purpose first, std::uint32_t second, std::uint32_t third)
      : PhiloxStream(seed, static_cast<std::uint32_t>(first), second, third) {}

  std::uint32_t next() {
    if (at_ == 4) {
      block_ = philox(seed_, counter_);
      ++counter_[3];
      at_ = 0;
    }
    return block_[at_++];
  }
  float uniform() { return unit_float(next()); }                                   // [0, 1)
  float uniform(float low, float high) { return low + (high - low) * uniform(); }  // [low, high], high by rounding alone
  // In [0, n), each as likely; n is at least 1. Words whose remainder would favour small numbers are passed over.
  std::uint32_t below(std::uint32_t n) {
    const std::uint32_t few = (0u - n) % n;  // 2^32 mod n
    while (true) {
      const std::uint64_t product = std::uint64_t{next()} * n;
      if (static_cast<std::uint32_t>(product) >= few) return static_cast<std::uint32_t>(product >> 32);
    }
  }

 private:
  std::uint64_t seed_;
  PhiloxBlock counter_, block_{};
  std::size_t at_ = 4;
};

}  // namespace tandem
