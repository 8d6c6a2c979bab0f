// Shapes: dimensions in ONNX's logical order (images: N, C, H, W). -1 stands for a dimension that is not known yet.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tandem {

using Shape = std::vector<std::int64_t>;

// Product of the dimensions; 1 for rank 0. Throws InvalidModel when one is negative or the product does not fit 2^62.
std::int64_t elements(std::span<const std::int64_t>);
std::string to_string(std::span<const std::int64_t>);  // "[1, 3, 299, 299]"
// Elements between neighbours of each dimension, row-major.
std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t>);
// numpy's broadcasting of two shapes; throws InvalidModel naming both when they do not fit.
Shape broadcast(std::span<const std::int64_t>, std::span<const std::int64_t>);
// Axis in [-rank, rank) to [0, rank); throws InvalidModel naming `what`.
std::int64_t normalise_axis(std::int64_t axis, std::int64_t rank, const char* what = "axis");

}  // namespace tandem
