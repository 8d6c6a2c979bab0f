#include "parallel/flat_arrays.h"

namespace tandem {
namespace {

constexpr std::int64_t kLine = 16;  // floats

std::int64_t whole_lines(const Shape& shape) { return (elements(shape) + kLine - 1) / kLine * kLine; }

}  // namespace

std::size_t FlatArrays::bytes_for(std::span<const Shape> shapes) {
  std::int64_t floats = 0;
  for (const Shape& shape : shapes) floats += whole_lines(shape);
  return static_cast<std::size_t>(floats) * sizeof(float);
}

FlatArrays::FlatArrays(MemoryResource& memory, std::vector<Shape> shapes) : shapes_(std::move(shapes)), buffer_(memory, bytes_for(shapes_)) {
  for (const Shape& shape : shapes_) {
    offsets_.push_back(block_size_);
    block_size_ += whole_lines(shape);
  }
}

}  // namespace tandem
