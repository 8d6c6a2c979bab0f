#include "parallel/split.h"

#include <algorithm>

namespace tandem {

std::vector<std::int64_t> split_batch(std::int64_t batch, int parts, SplitRule rule) {
  const std::int64_t n = std::max(1, parts), each = batch / n, rest = batch % n;
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t extra = rule == SplitRule::kBalanced ? (i < rest ? 1 : 0) : (i == n - 1 ? rest : 0);
    if (each + extra > 0) sizes.push_back(each + extra);
  }
  return sizes;
}

int share_of(int index, int count, int parts) {
  const int n = std::max(1, parts), each = count / n, rest = count % n, in_larger = rest * (each + 1);
  return index < in_larger ? index / (each + 1) : rest + (index - in_larger) / std::max(1, each);
}

}  // namespace tandem
