// A tensor on the host: type, shape and bytes, row-major. Copies share the bytes; bytes are written only before they are shared.
//
// A deferred tensor is a recipe: its bytes are made when somebody asks. Large weights are such (they lie in a file, or are to be scaled by a
// folded normalisation), so that packing them one after the other takes the memory of one.
#pragma once

#include <cstddef>
#include <functional>
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
  // `make` gives a tensor of this type and shape; it may be called several times, from any thread. `beside`: bytes that it takes for the
  // moment besides the result's.
  static Tensor deferred(DType dtype, Shape shape, std::function<Tensor()> make, std::size_t beside = 0);
  // Bytes that made() takes at most until its result goes.
  std::size_t making_bytes() const;
  // The tensor itself; for a deferred one what its recipe makes, kept by the caller alone. Whoever reads large constants once uses it.
  Tensor made() const;
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
  // A deferred tensor is made at the first call and kept as long as a copy of it lives.
  const void* data() const { return recipe_ ? kept_data() : data_; }
  // Only for the owner that made it, before it is shared.
  void* mutable_data() { return const_cast<void*>(data()); }
  // T must be the element type; throws std::logic_error otherwise.
  template <class T>
  std::span<const T> as() const {
    check_type(dtype_of<T>());
    return {static_cast<const T*>(data()), static_cast<std::size_t>(size())};
  }
  template <class T>
  std::span<T> as_mutable() {
    check_type(dtype_of<T>());
    return {static_cast<T*>(mutable_data()), static_cast<std::size_t>(size())};
  }
  // Both are copies of one tensor (the converse need not hold: equal bytes may lie twice).
  bool shares(const Tensor& other) const { return recipe_ == other.recipe_ && data_ == other.data_; }
  // The same bytes under another shape with as many elements.
  Tensor reshaped(Shape shape) const;
  // Elements as int64 (integer and bool types) or double (all numeric types), copied.
  std::vector<std::int64_t> to_ints() const;
  std::vector<double> to_doubles() const;

 private:
  struct Recipe;
  const void* kept_data() const;
  void check_type(DType) const;
  void fill_from(const void* values, std::size_t bytes);

  DType dtype_ = DType::kNone;
  Shape shape_;
  const void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<Recipe> recipe_;
};

}  // namespace tandem
