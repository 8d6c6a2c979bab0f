#include "parallel/shard_tree.h"

#include <algorithm>
#include <array>

namespace tandem {
namespace {

constexpr std::int64_t kChunk = 1024;

void add_chunk(std::span<const float* const> parts, std::int64_t at, std::int64_t size, float* to) {
  if (parts.size() == 1) {
    std::copy_n(parts[0] + at, size, to);
    return;
  }
  const auto left = static_cast<std::size_t>(left_of(static_cast<int>(parts.size())));
  std::array<float, kChunk> right;
  add_chunk(parts.first(left), at, size, to);
  add_chunk(parts.subspan(left), at, size, right.data());
  for (std::int64_t i = 0; i < size; ++i) to[i] += right[static_cast<std::size_t>(i)];
}

}  // namespace

int left_of(int count) {
  int left = 1;
  while (left * 2 < count) left *= 2;
  return left;
}

void add_tree(std::span<const float* const> parts, std::int64_t size, float* to) {
  for (std::int64_t at = 0; at < size; at += kChunk) add_chunk(parts, at, std::min(kChunk, size - at), to + at);
}

}  // namespace tandem
