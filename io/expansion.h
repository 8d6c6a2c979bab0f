// How far compressed data may grow: the bound that a small file cannot talk its way around.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tandem::io {

// Most bytes that are unpacked from `compressed` bytes of deflate. Deflate itself cannot make more than 1032 of one byte; beyond 256 MiB (one-hot
// labels of large sets stay below) no set of samples shrinks 32 times.
constexpr std::int64_t expansion_limit(std::int64_t compressed) {
  return std::min(1032 * compressed + 4096, std::max(32 * compressed, std::int64_t{256} << 20));
}

}  // namespace tandem::io
