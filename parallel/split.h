// How a global batch is cut in shares.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

enum class SplitRule { kBalanced, kKeras };

// Sizes of the shares, in order; they add up to `batch`.
// kBalanced: sizes differ by at most one, larger first; with fewer samples than parts only `batch` parts get one (no empty share is listed).
// kKeras: multi_gpu_model's rule: floor(batch / parts) each, the last takes the rest; parts with zero samples are not listed.
std::vector<std::int64_t> split_batch(std::int64_t batch, int parts, SplitRule rule);

// Which of `parts` shares of `count` things holds thing `index`, with kBalanced's sizes: the device of a shard.
int share_of(int index, int count, int parts);

}  // namespace tandem
