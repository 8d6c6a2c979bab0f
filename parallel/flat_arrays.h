// Float32 arrays one behind the other in one block: weights, gradients, an optimizer's slots.
#pragma once

#include <span>
#include <vector>

#include "runtime/base/tensor.h"
#include "runtime/memory/memory.h"

namespace tandem {

class FlatArrays {
 public:
  FlatArrays() = default;
  // Zeroed; each array begins at a 64-byte line.
  FlatArrays(MemoryResource& memory, std::vector<Shape> shapes);
  // What such a block takes.
  static std::size_t bytes_for(std::span<const Shape> shapes);

  std::size_t count() const { return shapes_.size(); }
  const std::vector<Shape>& shapes() const { return shapes_; }
  const Shape& shape(std::size_t i) const { return shapes_[i]; }
  std::int64_t size(std::size_t i) const { return elements(shapes_[i]); }
  float* data(std::size_t i) const { return block() + offsets_[i]; }
  // The whole block, padding included, for what is elementwise.
  float* block() const { return reinterpret_cast<float*>(buffer_.data()); }
  std::int64_t block_size() const { return block_size_; }
  // Looks at the array while this object lives and is not moved.
  Tensor view(std::size_t i) const { return Tensor::view(DType::kF32, shapes_[i], data(i), nullptr); }

 private:
  std::vector<Shape> shapes_;
  std::vector<std::int64_t> offsets_;
  std::int64_t block_size_ = 0;
  Buffer buffer_;
};

}  // namespace tandem
