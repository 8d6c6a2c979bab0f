// The fixed binary tree along which what the shards of a batch computed is added: node (i, i + 1) of each level, a last one without a neighbour
// goes up as it is. Only the number of shards decides the order of additions. ((0+1)+(2+3))+((4+5)+(6+7)) for eight.
#pragma once

#include <cstdint>
#include <span>

namespace tandem {

// Shards below the left branch of a tree of `count` (at least 2): the largest power of two below count.
int left_of(int count);

// merge(left, right) over the results of get(0) ... get(count - 1).
template <class Get, class Merge>
auto merge_tree(int first, int count, const Get& get, const Merge& merge) -> decltype(get(0)) {
  if (count == 1) return get(first);
  const int left = left_of(count);
  auto a = merge_tree(first, left, get, merge);
  return merge(std::move(a), merge_tree(first + left, count - left, get, merge));
}

// to[i] = the tree's sum of parts[s][i], i < size. `to` is none of the parts. On the calling thread.
void add_tree(std::span<const float* const> parts, std::int64_t size, float* to);

}  // namespace tandem
