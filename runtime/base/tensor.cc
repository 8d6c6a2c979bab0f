#include "runtime/base/tensor.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "runtime/base/error.h"

namespace tandem {

Tensor::Tensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  const std::size_t rounded = (bytes() + 63) / 64 * 64 + 64;
  void* p = std::aligned_alloc(64, rounded);
  if (!p) throw OutOfMemory(fmt::format("cannot allocate {} bytes for a tensor of shape {}", bytes(), to_string(shape_)), bytes());
  std::memset(p, 0, rounded);
  data_ = p;
  owner_ = std::shared_ptr<const void>(p, [](const void* q) { std::free(const_cast<void*>(q)); });
}

Tensor Tensor::view(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner) {
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = std::move(shape);
  t.data_ = data;
  t.owner_ = std::move(owner);
  return t;
}

Tensor Tensor::reshaped(Shape shape) const {
  if (elements(shape) != size()) throw InvalidModel(fmt::format("cannot reshape {} to {}", to_string(shape_), to_string(shape)));
  Tensor t = *this;
  t.shape_ = std::move(shape);
  return t;
}

std::vector<std::int64_t> Tensor::to_ints() const {
  if (is_float(dtype_) || dtype_ == DType::kNone) throw InvalidModel(fmt::format("expected an integer tensor, found {}", name_of(dtype_)));
  return dispatch(dtype_, [&](auto tag) {
    std::vector<std::int64_t> out;
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>) {
      for (const T v : as<T>()) out.push_back(static_cast<std::int64_t>(v));
    }
    return out;
  });
}

std::vector<double> Tensor::to_doubles() const {
  return dispatch(dtype_, [&](auto tag) {
    using T = decltype(tag);
    std::vector<double> out;
    out.reserve(static_cast<std::size_t>(size()));
    for (const T v : as<T>()) {
      if constexpr (std::is_arithmetic_v<T>)
        out.push_back(static_cast<double>(v));
      else
        out.push_back(static_cast<double>(static_cast<float>(v)));
    }
    return out;
  });
}

void Tensor::check_type(DType t) const {
  if (t != dtype_) throw std::logic_error(fmt::format("tensor holds {}, not {}", name_of(dtype_), name_of(t)));
}

void Tensor::fill_from(const void* values, std::size_t n) {
  if (n != bytes()) throw std::logic_error(fmt::format("{} bytes given for a tensor of {}", n, bytes()));
  if (n) std::memcpy(mutable_data(), values, n);
}

}  // namespace tandem
