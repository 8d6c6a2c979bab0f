// A tensor on the host: type, shape and bytes, row-major. Copies share the bytes; bytes are written only before they are shared.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/shape.h"

namespace tandem {

class Tensor {
 public:
  Tensor() = default;
  // Owns zeroed memory, 64-byte aligned. Throws OutOfMemory when the system has none.
  Tensor(DType dtype, Shape shape);
  // Bytes that live elsewhere (a mapped file); `owner` keeps them alive.
  static Tensor view(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner);
  // A copy of `values`, whose count must fit `shape`.
  template <class T>
  static Tensor of(Shape shape, std::span<const T> values) {
    Tensor t(dtype_of<T>(), std::move(shape));
    t.fill_from(values.data(), values.size_bytes());
    return t;
  }
  template <class T>
  static Tensor scalar(T value) {
    return of<T>({}, std::span<const T>(&value, 1));
  }
  static Tensor ints(std::span<const std::int64_t> values) { return of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values); }

  explicit operator bool() const { return dtype_ != DType::kNone; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t rank() const { return static_cast<std::int64_t>(shape_.size()); }
  std::int64_t size() const { return elements(shape_); }  // elements
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * size_of(dtype_); }
  const void* data() const { return data_; }
  // Only for the owner that made it, before it is shared.
  void* mutable_data() { return const_cast<void*>(data_); }
  // T must be the element type; throws std::logic_error otherwise.
  template <class T>
  std::span<const T> as() const {
    check_type(dtype_of<T>());
    return {static_cast<const T*>(data_), static_cast<std::size_t>(size())};
  }
  template <class T>
  std::span<T> as_mutable() {
    check_type(dtype_of<T>());
    return {static_cast<T*>(mutable_data()), static_cast<std::size_t>(size())};
  }
  // The same bytes under another shape with as many elements.
  Tensor reshaped(Shape shape) const;
  // Elements as int64 (integer and bool types) or double (all numeric types), copied.
  std::vector<std::int64_t> to_ints() const;
  std::vector<double> to_doubles() const;

 private:
  void check_type(DType) const;
  void fill_from(const void* values, std::size_t bytes);

  DType dtype_ = DType::kNone;
  Shape shape_;
  const void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

}  // namespace tandem
